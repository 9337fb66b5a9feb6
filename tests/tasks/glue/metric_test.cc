// GLUE's metrics against scikit-learn and SciPy (doc/glue.md 12.2; more cases
// where golden numbers are beside the checkout), and the files of the GLUE
// server: what is written, read back, scored and refused.
// Tolerance: a few additions in another order.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "nlohmann/json.hpp"
#include "tasks/glue/task.h"
#include "tasks/metrics.h"
#include "tasks/task/benchmark.h"
#include "tasks/task/label_metrics.h"
#include "tasks/task/score_files.h"
#include "tests/support/digit_labels.h"
#include "tests/support/shared_data.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr double kTolerance = 1e-12;

TEST(GlueMetricTest, OfLabelsIsThatOfScikitLearn) {
  struct Case {
    const char* gold;
    const char* predicted;
    double accuracy;
    double f1;
    double matthews;
  };
  for (const Case& c : std::vector<Case>{
           {"1011001011", "1001011011", 0.8, 0.8333333, 0.5833333},
           {"1110", "1111", 0.75, 0.8571429, 0},
           {"0000", "0000", 1, 0, 0},
           {"1100", "0011", 0, 0, -1},
           {"001", "000", 0.6666667, 0, 0},
           {"0122100211", "0222101210", 0.7, -1, 0.5606061},
           {"", "", 0, 0, 0}}) {
    SCOPED_TRACE(c.gold);
    const auto gold = DigitLabels(c.gold);
    const auto predicted = DigitLabels(c.predicted);
    EXPECT_NEAR(LabelAccuracy(gold, predicted), c.accuracy, 1e-7);
    EXPECT_NEAR(MatthewsCorrelation(gold, predicted), c.matthews, 1e-7);
    if (c.f1 >= 0) {
      EXPECT_NEAR(LabelF1(gold, predicted, "1"), c.f1, 1e-7);
    }
  }
}

TEST(GlueMetricTest, OfMoreLabelsThan64BitsHoldProductsOf) {
  // 40 430 labels, all right but one.
  std::vector<std::string> gold(40'430, "0");
  std::fill_n(gold.begin(), 20'215, "1");
  std::vector<std::string> predicted = gold;
  predicted[0] = "0";
  EXPECT_NEAR(MatthewsCorrelation(gold, predicted), 0.99995053, 1e-8);
}

TEST(GlueMetricTest, OfScoresIsThatOfSciPy) {
  struct Case {
    std::vector<double> gold;
    std::vector<double> predicted;
    double pearson;
    double spearman;
  };
  for (const Case& c : std::vector<Case>{
           {{5, 4.75, 2.4, 2.75, 2.615}, {4.8, 4.9, 1.2, 3, 2}, 0.9514693, 0.9},
           {{0, 0, 1, 1, 2, 2, 3, 5},
            {.1, .1, .4, .3, .3, 2.2, 2.2, 4.9},
            0.9267801,
            0.9074074},
           {{1, 2, 3, 4}, {4, 3, 2, 1}, -1, -1},
           {{1, 2, 3, 4}, {10, 20, 30, 41}, 0.9997173, 1},
           {{1, 2, 3}, {.1, .1, .1}, 0, 0},
           {{4}, {4}, 0, 0},
           {{}, {}, 0, 0}}) {
    EXPECT_NEAR(PearsonCorrelation(c.gold, c.predicted), c.pearson, 1e-7);
    EXPECT_NEAR(SpearmanCorrelation(c.gold, c.predicted), c.spearman, 1e-7);
  }
}

TEST(GlueMetricTest, IsThatOfTheGoldenNumbers) {
  ETC_SHARED_DATA_OR_SKIP(const std::string path,
                          "golden/text_tasks/glue.json");
  const auto golden = nlohmann::json::parse(ReadFile(path).value());
  auto cases = golden.at("binary");
  cases.push_back(golden.at("three_way"));
  for (const auto& c : cases) {
    SCOPED_TRACE(c.dump());
    const auto labels = [&c](const char* field) {
      std::vector<std::string> values;
      for (const auto& value : c[field]) {
        values.push_back(value.dump());
      }
      return values;
    };
    const auto gold = labels("labels");
    const auto predicted = labels("preds");
    EXPECT_NEAR(LabelAccuracy(gold, predicted), c["accuracy"], kTolerance);
    EXPECT_NEAR(MatthewsCorrelation(gold, predicted), c["mcc"], kTolerance);
    if (c.contains("f1")) {
      EXPECT_NEAR(LabelF1(gold, predicted, "1"), c["f1"], kTolerance);
    }
  }
  for (const auto& c : golden.at("regression")) {
    SCOPED_TRACE(c.dump());
    const std::vector<double> gold = c["labels"];
    const std::vector<double> predicted = c["preds"];
    // SciPy has no number where one side is constant.
    const auto value = [&c](const char* name) {
      return c[name].is_number() ? c[name].get<double>() : 0.0;
    };
    EXPECT_NEAR(PearsonCorrelation(gold, predicted), value("pearson"),
                kTolerance);
    EXPECT_NEAR(SpearmanCorrelation(gold, predicted), value("spearman"),
                kTolerance);
  }
}

// --- Scores of a task --------------------------------------------------------

GlueOptions OptionsOf(const std::string& name) {
  const auto options = ReadTaskOptions<Glue>({{"name", name}}, "f: glue");
  EXPECT_TRUE(options.ok()) << options.status();
  return *options;
}

// Gold and predictions of rows 0, 1, ...
Glue::Answers AnswersOf(const std::string& name,
                        const std::vector<std::string>& gold,
                        const std::vector<std::string>& predicted) {
  const GlueOptions options = OptionsOf(name);
  Glue::Answers answers;
  for (size_t i = 0; i < gold.size(); ++i) {
    GlueGold value = {.task = options.task, .label = gold[i]};
    ParseGlueScore(gold[i], &value.score);
    answers.gold.emplace_back(absl::StrCat(i), value);
    GluePrediction prediction = {.label = predicted[i]};
    ParseGlueScore(predicted[i], &prediction.score);
    answers.predictions.emplace_back(absl::StrCat(i), prediction);
  }
  return answers;
}

TEST(GlueScoreTest, HasTheMetricsOfTheTask) {
  const auto near = [](double value) { return DoubleNear(value, 1e-7); };
  const auto score = [](const std::string& name,
                        const std::vector<std::string>& gold,
                        const std::vector<std::string>& predicted) {
    const Scores scores =
        Glue(OptionsOf(name)).Score(AnswersOf(name, gold, predicted));
    EXPECT_EQ(Glue(OptionsOf(name)).main_metric(), scores.metrics[0].first);
    EXPECT_THAT(scores.diagnostics,
                ElementsAre(Pair("distinct_predictions", testing::Ge(1))));
    return scores.metrics;
  };
  for (const char* name : {"mrpc", "qqp"}) {
    EXPECT_THAT(
        score(name, DigitLabels("1110"), DigitLabels("1111")),
        ElementsAre(Pair("combined", near((0.75 + 0.8571429) / 2)),
                    Pair("accuracy", 0.75), Pair("f1", near(0.8571429))));
  }
  EXPECT_THAT(score("cola", DigitLabels("1100"), DigitLabels("0011")),
              ElementsAre(Pair("matthews", near(-1)), Pair("accuracy", 0)));
  EXPECT_THAT(score("ax", {"neutral", "entailment"}, {"neutral", "neutral"}),
              ElementsAre(Pair("matthews", 0), Pair("accuracy", 0.5)));
  EXPECT_THAT(
      score("stsb", {"1", "2", "3", "4"}, {"1.0", "2.0", "3.0", "4.1"}),
      ElementsAre(Pair("combined", near((0.9997173 + 1) / 2)),
                  Pair("pearson", near(0.9997173)), Pair("spearman", near(1))));
  for (const char* name : {"sst2", "wnli"}) {
    EXPECT_THAT(score(name, DigitLabels("10"), DigitLabels("11")),
                ElementsAre(Pair("accuracy", 0.5)));
  }
  EXPECT_THAT(score("rte", {"entailment"}, {"entailment"}),
              ElementsAre(Pair("accuracy", 1)));
}

TEST(GlueScoreTest, TellsMatchedRowsFromMismatchedOnes) {
  Glue::Answers answers =
      AnswersOf("mnli", {"neutral", "neutral", "neutral", "entailment"},
                {"neutral", "entailment", "neutral", "entailment"});
  // Both files count from 0.
  for (size_t i = 0; i < 4; ++i) {
    const std::string id = absl::StrCat(i % 2);
    answers.gold[i].first = id;
    answers.gold[i].second.set = i < 2 ? "matched" : "mismatched";
    answers.predictions[i].first = id;
  }
  EXPECT_THAT(Glue(OptionsOf("mnli")).Score(answers).metrics,
              ElementsAre(Pair("accuracy", 0.75), Pair("accuracy_matched", 0.5),
                          Pair("accuracy_mismatched", 1)));
}

TEST(GlueScoreTest, DoesNotRoundOrClipScores) {
  Glue::Answers answers = AnswersOf("stsb", {"1", "4", "5"}, {"1", "4", "5"});
  answers.predictions[1].second.score = 6.00049;
  answers.predictions[2].second.score = 6.0004;
  EXPECT_NEAR(Glue(OptionsOf("stsb")).Score(answers).metrics[2].second, 0.5,
              kTolerance);
  EXPECT_EQ(Glue(OptionsOf("stsb")).FileContents(answers),
            "index\tprediction\n0\t1.000\n1\t5.000\n2\t5.000\n");
  answers.predictions[0].second.score = -1e-9;
  answers.predictions[1].second.score = 3.14159;
  EXPECT_EQ(Glue(OptionsOf("stsb")).FileContents(answers),
            "index\tprediction\n0\t0.000\n1\t3.142\n2\t5.000\n");
}

// --- Files -------------------------------------------------------------------

class GlueScoreFilesTest : public testing::Test {
 protected:
  absl::StatusOr<Metrics> ScoreOf(const std::string& name,
                                  const std::string& gold,
                                  const std::string& predictions) {
    return ScoreFiles(Glue(OptionsOf(name)),
                      {.gold = directory_.Write("dev.tsv", gold),
                       .predictions = directory_.Write("P.tsv", predictions)});
  }
  std::string Refusal(const std::string& name, const std::string& gold,
                      const std::string& predictions) {
    const auto scores = ScoreOf(name, gold, predictions);
    EXPECT_EQ(scores.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(scores.status().message());
  }
  TemporaryDirectory directory_;
};

constexpr char kRte[] =
    "index\tsentence1\tsentence2\tlabel\n0\ta\tb\tentailment\n1\ta\tb\t"
    "not_entailment\n";

TEST_F(GlueScoreFilesTest, AreScored) {
  const auto scores = ScoreOf(
      "rte", kRte, "index\tprediction\r\n0\tentailment\r\n1\tentailment\r\n");
  ASSERT_TRUE(scores.ok()) << scores.status();
  EXPECT_THAT(*scores, ElementsAre(Pair("accuracy", 0.5),
                                   Pair("distinct_predictions", 1)));
  // QQP without its broken row, which nothing is predicted for.
  const auto qqp = ScoreOf(
      "qqp",
      "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n5\t1\t2\ta\tb\t1\n"
      "6\t1\n7\t1\t2\ta\tb\t0\n",
      "index\tprediction\n0\t1\n1\t0\n");
  ASSERT_TRUE(qqp.ok()) << qqp.status();
  EXPECT_THAT(
      *qqp, ElementsAre(Pair("combined", 1), Pair("accuracy", 1), Pair("f1", 1),
                        Pair("distinct_predictions", 2)));
}

TEST_F(GlueScoreFilesTest, AreRefusedWithTheLine) {
  const std::string header = "index\tprediction\n";
  EXPECT_THAT(Refusal("rte", kRte, ""), HasSubstr("P.tsv should begin with"));
  EXPECT_THAT(Refusal("rte", kRte, "0\tentailment\n"),
              HasSubstr("P.tsv:1 should be \"index<tab>prediction\""));
  EXPECT_THAT(Refusal("rte", kRte, header + "0 entailment\n"),
              HasSubstr("P.tsv:2 should be the number of a row, a tab and a "
                        "prediction"));
  EXPECT_THAT(Refusal("rte", kRte, header + "0\tentailment\t1\n"),
              HasSubstr("P.tsv:2 should be the number of a row"));
  EXPECT_THAT(Refusal("rte", kRte, header + "0\tentailment\n"),
              HasSubstr("has none for 1"));
  EXPECT_THAT(
      Refusal("rte", kRte, header + "0\tentailment\n1\t1\n"),
      HasSubstr("P.tsv:3 should be entailment or not_entailment, for RTE, but "
                "is \"1\""));
  EXPECT_THAT(Refusal("rte", kRte,
                      header + "0\tentailment\n1\tentailment\n1\tentailment\n"),
              HasSubstr("P.tsv:4: the id \"1\" should occur once"));
  EXPECT_THAT(
      Refusal("stsb", "index\tsentence1\tsentence2\tscore\n0\ta\tb\t1\n",
              header + "0\tmuch\n"),
      HasSubstr("P.tsv:2 should be a number, for STS-B, but is "
                "\"much\""));
  // No labels; another label.
  EXPECT_THAT(Refusal("rte", "index\tsentence1\tsentence2\n0\ta\tb\n",
                      header + "0\tentailment\n"),
              HasSubstr("dev.tsv:2 is the first"));
  EXPECT_THAT(Refusal("rte", "index\tsentence1\tsentence2\tlabel\n0\ta\tb\t-\n",
                      header + "0\tentailment\n"),
              HasSubstr("dev.tsv:2: label should be entailment or"));
}

TEST_F(GlueScoreFilesTest, CannotBeReadWithoutATask) {
  const auto scores = ScoreFiles(
      Glue(),
      {.gold = directory_.Write("dev.tsv", kRte),
       .predictions = directory_.Write("P.tsv", "index\tprediction\n")});
  EXPECT_THAT(std::string(scores.status().message()),
              HasSubstr("give a configuration whose glue.name says so "
                        "(--config)"));
}

TEST(GlueOptionsTest, SayWhatIsMissingOrWrong) {
  const auto mistake = [](const nlohmann::json& json) {
    const auto options = ReadTaskOptions<Glue>(json, "f.json: glue");
    EXPECT_EQ(options.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(options.status().message());
  };
  EXPECT_THAT(mistake(nlohmann::json::object()),
              HasSubstr("f.json: glue.name is missing"));
  EXPECT_THAT(mistake({{"name", "squad"}}),
              HasSubstr("f.json: glue.name should be \"cola\" or \"sst2\" or "
                        "\"mrpc\" or \"qqp\" or \"wnli\" or \"stsb\" or "
                        "\"mnli\" or \"qnli\" or \"rte\" or \"ax\", but is "
                        "\"squad\""));
  EXPECT_THAT(mistake({{"name", "cloa"}}),
              HasSubstr("but is \"cloa\"; did you mean \"cola\"?"));
  EXPECT_THAT(
      mistake({{"name", "rte"}, {"labels", {"entailment"}}}),
      HasSubstr("glue.labels should be the labels of RTE in any order"));
  EXPECT_THAT(
      mistake({{"name", "rte"}, {"labels", "entailment"}}),
      HasSubstr("glue.labels should be the labels of RTE in any order"));
  EXPECT_THAT(mistake({{"name", "stsb"}, {"labels", {"0", "1"}}}),
              HasSubstr("glue.labels should not be given"));
  const auto options =
      ReadTaskOptions<Glue>({{"name", "STS-B"}}, "f.json: glue");
  ASSERT_TRUE(options.ok());
  EXPECT_STREQ(options->task->name, "stsb");
}

}  // namespace
}  // namespace etc
