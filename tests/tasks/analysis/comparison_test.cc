// Analyses written as JSON and read back, and several side by side: made of
// numbers known here, so that every median, mean and difference is. A median of
// a histogram is off by a bin at most, ln(9) / 1000 of entropies here; numbers
// of files have six digits.

#include "tasks/analysis/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tasks/analysis/analysis_files.h"
#include "tasks/analysis/analysis_html.h"
#include "tasks/analysis/analysis_reader.h"
#include "tasks/analysis/comparison_html.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr int64_t kComparedRows = 40;

// Entropies of head h of layer l lie around `base` + l / 4 + h / 8,
// divergences around 0.1 + h / 4, and half of the mass is on own keys.
PopulationStatistics ComparedPopulationOf(const std::string& name,
                                          double base) {
  PopulationStatistics population =
      MakePopulation({.name = name,
                      .layers = 3,
                      .heads = 2,
                      .max_keys = 9,
                      .radius = name == "global" ? 0 : 2,
                      .kinds = {"question", "[SEP]"}});
  population.rows = kComparedRows;
  population.rows_linked = 30;
  population.linked_share = 6;
  population.kind_share = {4, 0};
  population.rows_sampled = 4;
  for (size_t l = 0; l < 3; ++l) {
    for (size_t h = 0; h < 2; ++h) {
      HeadStatistics& head = population.heads[l][h];
      const double middle =
          base + static_cast<double>(l) / 4 + static_cast<double>(h) / 8;
      for (int64_t row = 0; row < kComparedRows; ++row) {
        const double spread = 0.01 * static_cast<double>(row % 5 - 2);
        head.entropy.Add(middle + spread);
        head.normalised.Add((middle + spread) / std::log(9.0));
        head.own_mass.Add(0.5 + spread);
        if (l > 0) {
          population.divergence[l - 1][h].Add(0.1 + static_cast<double>(h) / 4 +
                                              spread);
        }
      }
      head.sums.own_mass = 0.5 * kComparedRows;
      head.sums.own_share = 0.25 * kComparedRows;
      head.sums.linked_mass = 3;
      head.sums.kind_mass = {8, 0};
    }
  }
  if (!population.rows_by_position.empty()) {
    population.rows_by_position[3] = kComparedRows;
    for (std::vector<HeadStatistics>& heads : population.heads) {
      heads[1].sums.entropy_by_position[3] = kComparedRows;
    }
  }
  return population;
}

AttentionAnalysis ComparedAnalysis(const std::string& residual, double base) {
  AttentionAnalysis analysis = {.layers = 3,
                                .heads = 2,
                                .residual = residual,
                                .layer_norm = "post",
                                .checkpoint = absl::StrCat("runs/", residual),
                                .data = "dev.json",
                                .examples = 2};
  analysis.populations = {ComparedPopulationOf("long", base),
                          ComparedPopulationOf("global", base)};
  return analysis;
}

std::vector<AttentionAnalysis> TwoAnalyses() {
  return {ComparedAnalysis("off", 1), ComparedAnalysis("sum", 0.5)};
}

const std::vector<std::string> kNames = {"a.json", "b.json"};

TEST(AnalysisReaderTest, ReadsWhatIsWritten) {
  const AttentionAnalysis analysis = ComparedAnalysis("sum", 1);
  const auto read = ParseAnalysis(AnalysisJson(analysis), "a.json");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->residual, "sum");
  EXPECT_EQ(read->checkpoint, "runs/sum");
  EXPECT_EQ(read->examples, 2);
  ASSERT_EQ(read->populations.size(), 2u);
  for (size_t p = 0; p < 2; ++p) {
    const PopulationStatistics& written = analysis.populations[p];
    const PopulationStatistics& population = read->populations[p];
    EXPECT_EQ(population.name, written.name);
    EXPECT_EQ(population.rows, kComparedRows);
    EXPECT_THAT(population.kinds, ElementsAre("question", "[SEP]"));
    for (size_t l = 0; l < 3; ++l) {
      for (size_t h = 0; h < 2; ++h) {
        const HeadStatistics& head = population.heads[l][h];
        const HeadStatistics& expected = written.heads[l][h];
        EXPECT_EQ(head.entropy.counts(), expected.entropy.counts());
        EXPECT_EQ(head.entropy.Quantile(0.5), expected.entropy.Quantile(0.5));
        EXPECT_NEAR(head.entropy.standard_deviation(),
                    expected.entropy.standard_deviation(), 1e-7);
        const std::vector<KeyMass> masses = MassesOf(population, head);
        const std::vector<KeyMass> wanted = MassesOf(written, expected);
        ASSERT_EQ(masses.size(), wanted.size());
        for (size_t k = 0; k < masses.size(); ++k) {
          EXPECT_EQ(masses[k].keys, wanted[k].keys);
          EXPECT_NEAR(masses[k].mass, wanted[k].mass, 1e-6);
          EXPECT_NEAR(masses[k].share, wanted[k].share, 1e-6);
        }
      }
    }
  }
}

TEST(AnalysisReaderTest, SaysWhatIsWrong) {
  const std::string good = AnalysisJson(ComparedAnalysis("sum", 1));
  const auto message = [](const std::string& text) {
    const auto read = ParseAnalysis(text, "a.json");
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(read.status().message());
  };
  const auto with = [&](const std::string& pointer, nlohmann::json value) {
    nlohmann::json json = nlohmann::json::parse(good);
    json[nlohmann::json::json_pointer(pointer)] = std::move(value);
    return json.dump();
  };
  EXPECT_THAT(message("{"), HasSubstr("a.json:1:"));
  EXPECT_THAT(message(with("/format", "report")),
              HasSubstr("should be an attention-analysis of version 1, but is "
                        "\"report\" of version 1"));
  EXPECT_THAT(message(with("/model/heads", 0)),
              HasSubstr("a.json: model.heads should be from 1 to"));
  EXPECT_THAT(message(with("/populations", nlohmann::json::array())),
              HasSubstr("populations should be a list of 2, but is of 0"));
  EXPECT_THAT(
      message(with("/populations/1/entropy/2", nlohmann::json::array())),
      HasSubstr("populations[1].entropy[2] should be a list of 2, but has 0"));
  EXPECT_THAT(message(with("/populations/0/jsd/1/1/n", 39)),
              HasSubstr("populations[0].jsd[1][1].hist.counts should add up to "
                        "n = 39, but make 40"));
  EXPECT_THAT(message(with("/populations/0/entropy/0/0/hist/counts",
                           {{40, 1}, {0, 998}})),
              HasSubstr("should have 1000 bins, but has 999"));
  EXPECT_THAT(message(with("/populations/0/entropy/0/0/hist/counts",
                           {{40, 1}, {0, 1'000'000'000}})),
              HasSubstr("but has [0,1000000000]"));
  // Numbers beyond int64_t, two counts that have no sum within it, and a count
  // that would have none, were it in all bins of all heads.
  for (const nlohmann::json& run :
       {nlohmann::json{40, 18446744073709551615u},
        nlohmann::json{18446744073709551615u, 1}, nlohmann::json{-1, 1},
        nlohmann::json{9223372036854775807, 2},
        nlohmann::json{8796093022209, 1}}) {
    EXPECT_THAT(message(with("/populations/0/entropy/0/0/hist/counts",
                             nlohmann::json::array({run}))),
                HasSubstr("populations[0].entropy[0][0].hist.counts should "
                          "have pairs of a count up to 2^43 and up to 100000 "
                          "bins, but has " +
                          run.dump()));
  }
  EXPECT_THAT(message(with("/populations/0/entropy/0/0/hist/hi", 7.5)),
              HasSubstr("entropy[0][0].hist.hi and lo should be"));
  EXPECT_THAT(message(with("/populations/0/blocks/0/0/masses/linked", 1)),
              HasSubstr("blocks[0][0].masses.linked"));
  const auto missing = ReadAnalysis("/nowhere");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()),
              HasSubstr("/nowhere should be an analysis"));
}

// 10^6 heads of three histograms of 1000 bins would take 24 GB.
TEST(AnalysisReaderTest, AllocatesNothingForHeadsThatTheFileHasNot) {
  nlohmann::json json =
      nlohmann::json::parse(AnalysisJson(ComparedAnalysis("sum", 1)));
  json["model"]["layers"] = 1000;
  json["model"]["heads"] = 1000;
  const auto read = ParseAnalysis(json.dump(), "a.json");
  EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(read.status().message(),
            "a.json: populations[0].entropy should be a list of 1000, but has "
            "3");
}

TEST(AttentionComparisonTest, TakesMeansOfMediansAndTheirDifferences) {
  const std::vector<AttentionAnalysis> analyses = TwoAnalyses();
  ASSERT_TRUE(CheckComparable(analyses, kNames).ok());
  EXPECT_THAT(ComparisonWarnings(analyses), IsEmpty());
  EXPECT_THAT(ColumnNames(analyses), ElementsAre("off", "sum"));
  const std::vector<ComparedPopulation> compared = Compare(analyses);
  ASSERT_EQ(compared.size(), 2u);
  std::vector<std::string> ids;
  for (const ComparedMeasure& measure : compared[0].measures) {
    ids.push_back(measure.id);
  }
  // Nobody sees [SEP].
  EXPECT_THAT(ids, ElementsAre("entropy", "entropy_normalised", "jsd",
                               "l2l_mass", "linked_mass", "question_mass"));
  const double bin = std::log(9.0) / 1000;
  const ComparedMeasure& entropy = compared[0].measures[0];
  ASSERT_EQ(entropy.layers.size(), 3u);
  for (size_t l = 0; l < 3; ++l) {
    const double shift = static_cast<double>(l) / 4 + 1.0 / 16;
    EXPECT_EQ(entropy.layers[l].name, absl::StrCat("L-", l));
    EXPECT_NEAR(entropy.layers[l].values[0], 1 + shift, bin);
    EXPECT_NEAR(entropy.layers[l].values[1], 0.5 + shift, bin);
  }
  const ComparedMeasure& jsd = compared[1].measures[2];
  ASSERT_EQ(jsd.layers.size(), 2u);
  EXPECT_EQ(jsd.layers[1].name, "L-2&1");
  EXPECT_NEAR(jsd.layers[1].values[1], 0.1 + 0.125, 1e-3);
  EXPECT_NEAR(compared[0].measures[3].layers[0].values[0], 0.5, 1e-9);
  EXPECT_NEAR(compared[0].measures[4].layers[0].values[0], 0.1, 1e-9);
  EXPECT_NEAR(compared[0].measures[5].layers[0].values[0], 0.2, 1e-9);
}

TEST(AttentionComparisonTest, WritesJsonCsvAndAPage) {
  const std::vector<AttentionAnalysis> analyses = TwoAnalyses();
  const nlohmann::json json = nlohmann::json::parse(ComparisonJson(analyses));
  EXPECT_EQ(json.at("format"), "attention-comparison");
  const nlohmann::json& layer =
      json.at("populations").at(0).at("measures").at("entropy").at(2);
  EXPECT_EQ(layer.at("layer"), "L-2");
  EXPECT_EQ(layer.at("difference").at(0), 0.0);
  EXPECT_NEAR(layer.at("difference").at(1).get<double>(), -0.5, 0.005);
  const std::string csv = ComparisonCsv(analyses);
  EXPECT_THAT(csv, HasSubstr("\nlong,l2l_mass,L-0,2,sum,0.5,0\n"));
  // 2 populations of 2 models: 5 quantities of 3 layers and one of 2 pairs.
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 2 * 2 * (5 * 3 + 2));
  const std::string page = ComparisonHtml(analyses);
  EXPECT_THAT(page, AllOf(HasSubstr("sum &minus; off"), HasSubstr("L-2&amp;1"),
                          HasSubstr("data-measure=\"l2l_mass\""),
                          Not(HasSubstr("Careful")), Not(HasSubstr("nan"))));
}

TEST(AttentionComparisonTest, WarnsOfOtherDataAndNumbersEqualModes) {
  std::vector<AttentionAnalysis> analyses = TwoAnalyses();
  analyses[1].residual = "off";
  EXPECT_THAT(ColumnNames(analyses), ElementsAre("1: off", "2: off"));
  analyses[1].populations[1].rows = 3;
  EXPECT_THAT(ComparisonWarnings(analyses),
              ElementsAre(HasSubstr("2: off has 3 rows, 1: off 40")));
  analyses[1].data = "test.json";
  EXPECT_THAT(ComparisonWarnings(analyses),
              ElementsAre(HasSubstr("2: off is of test.json")));
  EXPECT_THAT(ComparisonHtml(analyses), HasSubstr("Careful"));
}

TEST(AttentionComparisonTest, RefusesModelsWithoutCounterparts) {
  const auto message = [](auto change) {
    std::vector<AttentionAnalysis> analyses = TwoAnalyses();
    change(&analyses[1]);
    const absl::Status status = CheckComparable(analyses, kNames);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_EQ(message([](AttentionAnalysis* a) { a->heads = 4; }),
            "b.json has 4 heads, but a.json has 2: divergences are between "
            "heads of one index");
  EXPECT_EQ(message([](AttentionAnalysis* a) { a->layers = 4; }),
            "b.json has 4 layers, but a.json has 3: differences are by layer");
  EXPECT_THAT(message([](AttentionAnalysis* a) { a->is_bert = true; }),
              HasSubstr("b.json is BERT, but a.json is ETC"));
  EXPECT_THAT(message([](AttentionAnalysis* a) { a->jsd_distance = true; }),
              HasSubstr("b.json has their square roots (--jsd-distance), but "
                        "a.json has divergences"));
}

// The files of one analysis with the quantities beside entropy and divergence.
TEST(AnalysisFilesTest, HaveMassesPositionsAndSimilarities) {
  AttentionAnalysis analysis = ComparedAnalysis("sum", 1);
  for (PopulationStatistics& population : analysis.populations) {
    population.similarity[1][0 * 2 + 1] = 1;  // of 4 rows
  }
  const nlohmann::json json = nlohmann::json::parse(AnalysisJson(analysis));
  const nlohmann::json& longs = json.at("populations").at(0);
  const nlohmann::json& masses = longs.at("blocks").at(1).at(0).at("masses");
  EXPECT_EQ(masses.at("linked").at("mass"), 0.1);
  EXPECT_EQ(masses.at("linked").at("share"), 0.2);
  EXPECT_EQ(masses.at("question").at("lift"), 2);
  EXPECT_TRUE(masses.at("[SEP]").at("lift").is_null());
  const nlohmann::json& positions = longs.at("by_position");
  EXPECT_EQ(positions.at("from").at(3), 0.15);
  EXPECT_EQ(positions.at("rows").at(3), kComparedRows);
  EXPECT_EQ(positions.at("entropy").at(2).at(1).at(3), 1);
  EXPECT_TRUE(positions.at("entropy").at(2).at(1).at(4).is_null());
  EXPECT_EQ(longs.at("by_sentence_length").at("from").at(7), 128);
  EXPECT_EQ(longs.at("similarity").at("jsd").at(1).at(0).at(1), 0.25);
  EXPECT_TRUE(json.at("populations").at(1).at("by_position").is_null());
  EXPECT_THAT(MassCsv(analysis),
              AllOf(HasSubstr("\nlong,1,0,linked,30,0.1,0.2,0.5\n"),
                    HasSubstr("\nglobal,0,1,g2l,40,0.5,0.75,0.666667\n"),
                    HasSubstr("\nlong,0,0,[SEP],40,0,0,\n")));
  EXPECT_THAT(PositionCsv(analysis),
              AllOf(HasSubstr("\nlong,2,1,position,0.15,0.2,40,1\n"),
                    HasSubstr("\nlong,2,1,position,0.2,0.25,0,\n"),
                    HasSubstr("\nlong,0,0,sentence_length,128,,0,\n"),
                    Not(HasSubstr("global"))));
  EXPECT_THAT(SimilarityCsv(analysis), HasSubstr("\nlong,2,0,1,4,0.25\n"));
  const std::string page = AnalysisHtml(analysis);
  EXPECT_THAT(
      page,
      AllOf(HasSubstr("Mass on question tokens (0.1 of the visible keys)"),
            HasSubstr("Mass on the global token of its sentence"),
            HasSubstr("Mass on the long tokens of its sentence"),
            Not(HasSubstr("Mass on [SEP]")), HasSubstr("Entropy by position"),
            HasSubstr("head 0 of layer 2, head 1 of layer 1: 0.2500"),
            Not(HasSubstr("nan"))));
}

// Layer 0 is given nothing, which is no ratio of 0.
TEST(AnalysisFilesTest, HaveCarriedOverNewInTheLogitsOrNothing) {
  AttentionAnalysis analysis = ComparedAnalysis("decay", 1);
  const ScoreDeviations lowest = {
      .block = "l2l", .pairs = 9, .new_scores = 0.5};
  ScoreDeviations upper = lowest;
  upper.carried_scores = 0.25;
  upper.logit_ratio = 4.5;
  upper.correlations = {0.5, std::nullopt};
  analysis.scores = {{lowest}, {upper}};
  const nlohmann::json scores =
      nlohmann::json::parse(AnalysisJson(analysis)).at("scores");
  EXPECT_EQ(
      scores.at(0).at("l2l").dump(),
      R"({"logit_ratio":null,"pairs":9,"std_carried":null,"std_new":0.5})");
  EXPECT_EQ(scores.at(1).at("l2l").at("std_carried"), 0.25);
  EXPECT_EQ(scores.at(1).at("l2l").at("logit_ratio"), 4.5);
  const std::string number = "<td class=\"number\">";
  EXPECT_THAT(
      AnalysisHtml(analysis),
      AllOf(HasSubstr("Carried / new in the logits"),
            HasSubstr("the deviation of b S over that of a s"),
            HasSubstr(absl::StrCat(number, "0.250</td>", number, "4.50</td>")),
            HasSubstr(absl::StrCat(number, "0.500</td>", number, "</td>",
                                   number, "</td>"))));
  // A table of new scores alone says nothing of those that are carried.
  analysis.scores = {{lowest}, {lowest}};
  EXPECT_THAT(AnalysisHtml(analysis), Not(HasSubstr("Carried and new")));
}

TEST(AttentionStatisticsTest, ClassesOfRowsCoverPositionsAndLengths) {
  EXPECT_EQ(PositionClass(0, 7), 0);
  EXPECT_EQ(PositionClass(6, 7), 17);
  EXPECT_EQ(PositionClass(99, 100), 19);
  const std::vector<std::pair<int64_t, int64_t>> sizes = {
      {1, 0}, {2, 1}, {3, 1}, {4, 2}, {127, 6}, {128, 7}, {4000, 7}};
  for (const auto& [tokens, expected] : sizes) {
    EXPECT_EQ(SentenceClass(tokens), expected) << tokens;
  }
}

TEST(MedianColourTest, ChangesBesideTheThresholds) {
  EXPECT_EQ(ColourOfEntropy(4.5), MedianColour::kYellow);
  EXPECT_EQ(ColourOfEntropy(4.5000001), MedianColour::kRed);
  EXPECT_EQ(ColourOfEntropy(1.5), MedianColour::kYellow);
  EXPECT_EQ(ColourOfEntropy(1.4999), MedianColour::kBlue);
  EXPECT_EQ(ColourOfDivergence(0.25), MedianColour::kYellow);
  EXPECT_EQ(ColourOfDivergence(0.75), MedianColour::kYellow);
  EXPECT_EQ(ColourOfDivergence(0.7501), MedianColour::kRed);
}

}  // namespace
}  // namespace etc
