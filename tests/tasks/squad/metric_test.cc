// The metrics of both versions: pairs and totals that the official programs
// gave (squad_metrics*.json in the folder of shared data; doc/squad.md 9, 10),
// best thresholds by hand, what becomes of predictions in files, and which
// metric is for which data. Shares are compared to 1e-9 of percent: sums are
// added in another order than there.

#include "tasks/squad/metric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "tasks/squad/task.h"
#include "tasks/task/score_files.h"
#include "tests/support/shared_data.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/squad/golden_data.h"

namespace etc {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr double kTolerance = 1e-9;

std::string GoldenPath(const std::string& name) {
  return SharedDataPath("golden/text_tasks/" + name);
}

double Metric(const Metrics& metrics, const std::string& name) {
  const auto found = FindMetric(metrics, name);
  EXPECT_TRUE(found.has_value()) << name;
  return found.value_or(-1e9);
}

// Scores a prediction for one question.
Metrics ScoreOne(const std::string& gold, const std::string& text,
                 SquadVersion version) {
  const ById<SquadGold> golds = {{"q", {.answers = {gold}}}};
  const ById<SquadVerdict> verdicts = {
      {"q", {.text = text, .best_text = text}}};
  return version == SquadVersion::k2
             ? ScoreSquad2(golds, verdicts, ScoringRules::kDefault)
             : ScoreSquad1(golds, verdicts);
}

TEST(SquadMetricTest, HasTheGoldenPairs) {  // doc/squad.md 13.4
  ETC_SHARED_DATA_OR_SKIP(const std::string path,
                          "golden/text_tasks/squad_metrics.json");
  const json pairs = ReadJsonOrFail(path)["pairs"];
  ASSERT_EQ(pairs.size(), 22u);
  for (const json& pair : pairs) {
    SCOPED_TRACE(pair.dump());
    const std::string gold = pair["gold"];
    const std::string text = pair["pred"];
    const Metrics first = ScoreOne(gold, text, SquadVersion::k1);
    EXPECT_NEAR(Metric(first, "exact_match"), 100 * pair["em_v1"].get<double>(),
                kTolerance);
    EXPECT_NEAR(Metric(first, "f1"), 100 * pair["f1_v1"].get<double>(),
                kTolerance);
    const Metrics second = ScoreOne(gold, text, SquadVersion::k2);
    EXPECT_NEAR(Metric(second, "exact"), 100 * pair["em"].get<double>(),
                kTolerance);
    EXPECT_NEAR(Metric(second, "f1"), 100 * pair["f1_v2"].get<double>(),
                kTolerance);
  }
}

ById<SquadGold> GoldOfFile(const std::string& path) {
  const Squad squad;
  ById<SquadGold> gold;
  for (const SquadRecord& record : ReadSquadRecords(path)) {
    gold.emplace_back(record.id, *squad.GoldOf(record));
  }
  return gold;
}

ById<SquadVerdict> VerdictsOfFiles(const std::string& predictions,
                                   const std::string& null_odds) {
  const json texts = ReadJsonOrFail(predictions);
  const json odds =
      null_odds.empty() ? json::object() : ReadJsonOrFail(null_odds);
  ById<SquadVerdict> verdicts;
  for (const auto& [id, text] : texts.items()) {
    SquadVerdict verdict = {.text = text, .best_text = text};
    if (odds.contains(id)) {
      verdict.null_odds = odds[id].get<double>();
    }
    verdicts.emplace_back(id, verdict);
  }
  return verdicts;
}

// Leaves the questions with null odds above `threshold` unanswered, as
// --na-prob-thresh of the official program.
ById<SquadVerdict> WithThreshold(ById<SquadVerdict> verdicts,
                                 double threshold) {
  for (auto& [id, verdict] : verdicts) {
    verdict.text = verdict.null_odds > threshold ? "" : verdict.text;
  }
  return verdicts;
}

// Expects the same scores, in the same order. Scores of the curves, which the
// official program has for its images, are not made here.
void ExpectTotals(const Metrics& metrics, const json& golden) {
  std::map<std::string, double> expected;
  for (const auto& [name, value] : golden.items()) {
    if (!name.starts_with("pr_")) {
      expected[name] = value;
    }
  }
  EXPECT_EQ(metrics.size(), expected.size());
  for (const auto& [name, value] : metrics) {
    ASSERT_TRUE(expected.contains(name)) << name;
    EXPECT_NEAR(value, expected[name], kTolerance) << name;
  }
}

TEST(SquadMetricTest, HasTheGoldenTotals) {
  ETC_SHARED_DATA_OR_SKIP(const std::string path,
                          "golden/text_tasks/squad_metrics.json");
  const json totals = ReadJsonOrFail(path)["totals"];
  ExpectTotals(
      ScoreSquad1(
          GoldOfFile(GoldenPath("squad_metrics_v1_data.json")),
          VerdictsOfFiles(GoldenPath("squad_metrics_v1_predictions.json"), "")),
      totals["v1.1"]);
  const ById<SquadGold> gold =
      GoldOfFile(GoldenPath("squad_metrics_v2_data.json"));
  const std::string predictions =
      GoldenPath("squad_metrics_v2_predictions.json");
  constexpr auto kOfficial = ScoringRules::kOfficial;
  ExpectTotals(ScoreSquad2(gold, VerdictsOfFiles(predictions, ""), kOfficial),
               totals["v2.0, no na file"]);
  const ById<SquadVerdict> with_odds =
      VerdictsOfFiles(predictions, GoldenPath("squad_metrics_v2_na_prob.json"));
  ExpectTotals(ScoreSquad2(gold, WithThreshold(with_odds, 1.0), kOfficial),
               totals["v2.0, na file, threshold 1.0"]);
  ExpectTotals(ScoreSquad2(gold, WithThreshold(with_odds, -2.5), kOfficial),
               totals["v2.0, na file, threshold -2.5"]);
}

TEST(SquadMetricTest, FindsTheBestThresholds) {
  const ById<SquadGold> gold = {{"a", {.answers = {"x y"}}},
                                {"b", {.answers = {}}},
                                {"c", {.answers = {"x"}}},
                                {"d", {.answers = {}}}};
  // Sorted by odds: c is right, a half right, b and d should not be answered.
  const Metrics metrics =
      ScoreSquad2(gold,
                  {{"a", {.text = "", .best_text = "x z", .null_odds = 1}},
                   {"b", {.text = "", .best_text = "x", .null_odds = 2}},
                   {"c", {.text = "x", .best_text = "x", .null_odds = -3}},
                   {"d", {.text = "", .best_text = "x", .null_odds = 5}}},
                  ScoringRules::kDefault);
  EXPECT_THAT(metrics,
              ElementsAre(Pair("exact", 75), Pair("f1", 75), Pair("total", 4),
                          Pair("HasAns_exact", 50), Pair("HasAns_f1", 50),
                          Pair("HasAns_total", 2), Pair("NoAns_exact", 100),
                          Pair("NoAns_f1", 100), Pair("NoAns_total", 2),
                          Pair("best_exact", 75), Pair("best_exact_thresh", -3),
                          Pair("best_f1", 87.5), Pair("best_f1_thresh", 1)));
}

// Expects a best score, exact and F1, its threshold, and that the threshold
// gives the score.
void ExpectBestThreshold(const ById<SquadGold>& gold,
                         const ById<SquadVerdict>& verdicts, double exact,
                         double threshold) {
  const Metrics metrics = ScoreSquad2(gold, verdicts, ScoringRules::kDefault);
  EXPECT_EQ(Metric(metrics, "best_exact"), exact);
  EXPECT_EQ(Metric(metrics, "best_f1"), exact);
  EXPECT_EQ(Metric(metrics, "best_f1_thresh"), threshold);
  ById<SquadVerdict> judged = verdicts;
  for (auto& [id, verdict] : judged) {
    verdict.text = verdict.null_odds > threshold ? "" : verdict.best_text;
  }
  const Metrics with = ScoreSquad2(gold, judged, ScoringRules::kDefault);
  EXPECT_EQ(Metric(with, "exact"), exact);
  EXPECT_EQ(Metric(with, "f1"), exact);
}

TEST(SquadMetricTest, FindsThresholdsThatGiveTheirScores) {
  const ById<SquadGold> gold = {{"a", {.answers = {"x"}}},
                                {"b", {.answers = {}}},
                                {"c", {.answers = {}}}};
  // Answers are all wrong: none should be given.
  const ById<SquadVerdict> wrong = {{"a", {.best_text = "y", .null_odds = -4}},
                                    {"b", {.best_text = "y", .null_odds = -3}},
                                    {"c", {.best_text = "y", .null_odds = 2}}};
  ExpectBestThreshold(gold, wrong, 100 * (2.0 / 3), -5);
  // The answer to "a" is right, but "b" and "c" go with it.
  const ById<SquadVerdict> equal = {{"a", {.best_text = "x", .null_odds = -4}},
                                    {"b", {.best_text = "y", .null_odds = -4}},
                                    {"c", {.best_text = "y", .null_odds = -4}}};
  ExpectBestThreshold(gold, equal, 100 * (2.0 / 3), -5);
  // A text without words is no answer.
  const ById<SquadVerdict> article = {
      {"a", {.best_text = "x", .null_odds = -4}},
      {"b", {.best_text = "the", .null_odds = -4}},
      {"c", {.best_text = "y", .null_odds = 2}}};
  ExpectBestThreshold(gold, article, 100, -4);
  // Odds of which 1 is no part.
  ById<SquadVerdict> large = wrong;
  for (auto& [id, verdict] : large) {
    verdict.null_odds = -1e30;
  }
  ExpectBestThreshold(gold, large, 100 * (2.0 / 3),
                      std::nextafter(-1e30, -HUGE_VAL));

  const auto official = [&](const ById<SquadVerdict>& verdicts) {
    const Metrics metrics =
        ScoreSquad2(gold, verdicts, ScoringRules::kOfficial);
    return std::pair(Metric(metrics, "best_f1"),
                     Metric(metrics, "best_f1_thresh"));
  };
  EXPECT_EQ(official(wrong), std::pair(100 * (2.0 / 3), 0.0));
  EXPECT_EQ(official(equal), std::pair(100.0, -4.0));
}

TEST(SquadMetricTest, CountsMissingPredictionsInVersion1Only) {
  const ById<SquadGold> gold = {{"a", {.answers = {"x"}}},
                                {"b", {.answers = {"y"}}}};
  const ById<SquadVerdict> one = {{"a", {.text = "x"}},
                                  {"other", {.text = "y"}}};
  EXPECT_EQ(Metric(ScoreSquad1(gold, one), "f1"), 50);
  const Metrics second = ScoreSquad2(gold, one, ScoringRules::kDefault);
  EXPECT_EQ(Metric(second, "f1"), 100);
  EXPECT_EQ(Metric(second, "total"), 1);
}

// Scoring of files: gold with one answerable and one impossible question.
class SquadFilesTest : public testing::Test {
 protected:
  static std::string Question(const std::string& id, const std::string& rest) {
    return absl::StrCat(R"({"id": ")", id, R"(", "question": "q", )", rest,
                        "}");
  }
  std::string Gold(const std::string& questions) {
    return directory_.Write(
        "gold.json",
        absl::StrCat(R"({"data": [{"paragraphs": [{"context": "x y", "qas": [)",
                     questions, "]}]}]}"));
  }
  std::string SecondVersion() {
    return Gold(absl::StrCat(
        Question("a", R"("answers": [{"text": "x"}], "is_impossible": false)"),
        ", ", Question("b", R"("answers": [], "is_impossible": true)")));
  }
  absl::StatusOr<Metrics> Score(const std::string& gold,
                                const std::string& predictions,
                                ScoringRules rules = ScoringRules::kDefault,
                                const SquadOptions& options = {}) {
    return ScoreFiles(
        Squad(options),
        {.gold = gold, .predictions = directory_.Write("p.json", predictions)},
        rules);
  }

  TemporaryDirectory directory_;
};

TEST_F(SquadFilesTest, AreScoredByTheVersionOfTheData) {
  const auto first = Score(Gold(Question("a", R"("answers": [{"text": "x"}])")),
                           R"({"a": "the x"})");
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_THAT(*first, ElementsAre(Pair("exact_match", 100), Pair("f1", 100)));
  const auto second = Score(SecondVersion(), R"({"a": "y", "b": ""})");
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(Metric(*second, "f1"), 50);
  EXPECT_EQ(Metric(*second, "NoAns_f1"), 100);
  EXPECT_EQ(FindMetric(*second, "best_f1"), std::nullopt);
}

TEST_F(SquadFilesTest, OfNBestAnswersAreJudgedByTheThreshold) {
  const std::string candidates = R"(
      {"a": [{"text": "x", "start_logit": 1, "end_logit": 1},
             {"text": "", "start_logit": 0, "end_logit": 3}],
       "b": [{"text": "", "start_logit": 4, "end_logit": 4},
             {"text": "y", "start_logit": 1, "end_logit": 2}]})";
  for (const auto& [threshold, f1] :
       std::map<double, double>{{0, 50}, {1, 100}, {5, 50}}) {
    const auto scores =
        Score(SecondVersion(), candidates, ScoringRules::kDefault,
              {.null_score_diff_threshold = threshold});
    ASSERT_TRUE(scores.ok()) << scores.status();
    EXPECT_EQ(Metric(*scores, "f1"), f1) << threshold;
    EXPECT_EQ(Metric(*scores, "best_f1"), 100);
    EXPECT_EQ(Metric(*scores, "best_f1_thresh"), 1);
  }
}

// Lines of `realetc predict --data - --output -` have the n-best answers, so
// they are scored as both files are.
TEST_F(SquadFilesTest, OfLinesHaveTheScoresOfNBestAnswers) {
  const ById<SquadPrediction> predictions = {
      {"a",
       {.text = "x",
        .candidates = {{.text = "x", .start_logit = 1, .end_logit = 1},
                       {.text = "", .start_logit = 0, .end_logit = 3}}}},
      {"b",
       {.text = "",
        .candidates = {{.text = "", .start_logit = 4, .end_logit = 4},
                       {.text = "y", .start_logit = 1, .end_logit = 2}}}}};
  std::string lines;
  for (const auto& [id, prediction] : predictions) {
    absl::StrAppend(&lines, Squad().PredictionJson(id, prediction), "\n");
  }
  // The answers were decided by a threshold from 1 to 5, which nothing here
  // names: they count as they are.
  const auto scores = Score(SecondVersion(), lines);
  ASSERT_TRUE(scores.ok()) << scores.status();
  EXPECT_EQ(Metric(*scores, "f1"), 100);
  EXPECT_EQ(Metric(*scores, "best_f1"), 100);
  EXPECT_EQ(Metric(*scores, "best_f1_thresh"), 1);
  for (const double threshold : {0.0, 1.0, 5.0}) {
    const SquadOptions options = {.null_score_diff_threshold = threshold};
    const auto of_lines = Score(SecondVersion(), lines, {}, options);
    const auto of_file =
        Score(SecondVersion(), SquadCandidatesToJson(predictions), {}, options);
    ASSERT_TRUE(of_lines.ok()) << of_lines.status();
    ASSERT_TRUE(of_file.ok()) << of_file.status();
    EXPECT_EQ(*of_lines, *of_file) << threshold;
  }
}

TEST_F(SquadFilesTest, ComeBackAsTheyWereWritten) {
  const ById<SquadPrediction> predictions = {
      {"z",
       {.text = "caf\u00e9 \"",
        .candidates = {{.text = "caf\u00e9 \"",
                        .probability = 1,
                        .start_logit = 0.25,
                        .end_logit = -2}}}},
      {"a",
       {.candidates = {{.text = "", .probability = 0.5, .start_logit = 3},
                       {.text = "b", .probability = 0.5, .end_logit = 1}}}}};
  const Squad squad;
  const std::string file = squad.FileContents({.predictions = predictions});
  EXPECT_EQ(file, "{\n    \"z\": \"caf\\u00e9 \\\"\",\n    \"a\": \"\"\n}\n");
  EXPECT_EQ(SquadNullOddsToJson(predictions), "{\n    \"a\": 2.0\n}\n");
  const auto texts = squad.ReadPredictions(directory_.Write("p.json", file));
  ASSERT_TRUE(texts.ok()) << texts.status();
  const auto by_id = LastOfEachId(*texts);
  EXPECT_EQ(FindById(by_id, "z")->text, "caf\u00e9 \"");
  EXPECT_EQ(FindById(by_id, "a")->text, "");
  const auto nbest = squad.ReadPredictions(
      directory_.Write("n.json", SquadCandidatesToJson(predictions)));
  ASSERT_TRUE(nbest.ok()) << nbest.status();
  const auto lists = LastOfEachId(*nbest);
  EXPECT_EQ(FindById(lists, "z")->candidates.at(0).end_logit, -2);
  EXPECT_EQ(JudgeSquad(*FindById(lists, "a")).null_odds, 2);
}

TEST_F(SquadFilesTest, KeepTheLastOfEqualIdsAtThePlaceOfTheFirst) {
  const ById<SquadPrediction> predictions = {
      {"b", {.text = "x"}}, {"a", {.text = "y"}}, {"b", {.text = "z"}}};
  EXPECT_EQ(Squad().FileContents({.predictions = predictions}),
            "{\n    \"b\": \"z\",\n    \"a\": \"y\"\n}\n");
}

TEST_F(SquadFilesTest, NameWhatIsWrong) {
  const std::string gold = SecondVersion();
  const std::map<std::string, std::string> mistakes = {
      {R"([])", "p.json should be a JSON object with an answer for each id"},
      {R"({"a": "x"})", "should have a prediction for each document of "},
      {R"({"a": "x", "b": "", "c": ""})", "has a prediction for c"},
      {R"({"a": 5, "b": ""})", "p.json: a should be the text of an answer"},
      {R"({"a": [], "b": ""})", "p.json: a should be the text of an answer"},
      {R"({"a": {"text": "x"}, "b": ""})",
       "p.json: a should be the text of an answer"},
      {R"({"id": "a", "nbest": []})",
       "p.json: a should be the text of an answer"},
      {R"({"a": [{"text": "x", "start_logit": 1}], "b": ""})",
       "p.json: a[0].end_logit is missing"}};
  for (const auto& [predictions, message] : mistakes) {
    const auto scores = Score(gold, predictions);
    EXPECT_THAT(std::string(scores.status().message()), HasSubstr(message));
  }
  // Officially, what is missing is left out.
  EXPECT_TRUE(Score(gold, R"({"a": "x"})", ScoringRules::kOfficial).ok());
  const auto none = Score(gold, R"({"z": "x"})", ScoringRules::kOfficial);
  EXPECT_EQ(none.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(none.status().message()),
            absl::StrCat("no record of ", gold, " has a prediction in ",
                         directory_.File("p.json")));
  const auto doubled =
      Score(Gold(absl::StrCat(Question("a", R"("answers": [])"), ", ",
                              Question("a", R"("answers": [])"))),
            R"({"a": ""})");
  EXPECT_THAT(std::string(doubled.status().message()),
              HasSubstr("data[0].paragraphs[0].qas[1]: the id \"a\" should "
                        "occur once"));
  const auto no_answer =
      Score(Gold(Question("a", R"("title": "t")")), R"({"a": ""})");
  EXPECT_THAT(std::string(no_answer.status().message()),
              HasSubstr("qas[0] is the first"));
}

}  // namespace
}  // namespace etc
