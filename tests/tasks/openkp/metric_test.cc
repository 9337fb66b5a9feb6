// Both protocols of OpenKP's scores: the golden numbers of doc/openkp.md 10.9,
// to 1e-9, and what is done with urls that occur twice, removed documents and
// files that do not fit.

#include "tasks/openkp/metric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tasks/openkp/task.h"
#include "tasks/task/score_files.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/openkp/spec_record.h"

namespace etc {
namespace {

using ::testing::HasSubstr;
using ScoreMap = std::map<std::string, double>;

constexpr double kTolerance = 1e-9;

void ExpectScores(const DepthScores& scores,
                  const std::vector<std::vector<double>>& expected) {
  for (size_t i = 0; i < scores.size(); ++i) {
    SCOPED_TRACE(kOpenkpDepths[i]);
    EXPECT_NEAR(scores[i].precision, expected[i][0], kTolerance);
    EXPECT_NEAR(scores[i].recall, expected[i][1], kTolerance);
    EXPECT_NEAR(scores[i].f1, expected[i][2], kTolerance);
  }
}

TEST(ScoreKeyPhrasesTest, DividesByTheDepth) {  // doc/openkp.md 8.1, 10.9
  ExpectScores(ScoreKeyPhrases({"star trek", "something"},
                               {"discovery season", "star trek"}),
               {{1, .5, 2. / 3}, {1. / 3, .5, .4}, {.2, .5, 2. / 7}});
}

TEST(ScoreKeyPhrasesTest, AgreesWithTheOfficialSample) {  // doc/openkp.md 10.9
  ExpectScores(ScoreKeyPhrases({"nba", "key generator", "xbox"},
                               {"nba 2k17", "key generator", "xbox"}),
               {{0, 0, 0}, {2. / 3, 2. / 3, 2. / 3}, {.4, 2. / 3, .5}});
}

TEST(ScoreKeyPhrasesTest, IsZeroWithoutReferences) {
  ExpectScores(ScoreKeyPhrases({"a"}, {}), {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}});
}

OpenkpReferences StarTrekReferences() {
  return ReferencesOf(OpenkpSpecRecord(
      {{"Star Trek Discovery Season 1 Director", kBoldFeature}},
      {"Star Trek", "Discovery Season"}));
}

ScoreMap ToMap(const Metrics& scores) { return {scores.begin(), scores.end()}; }

// Collects gold and predictions to score.
struct Scorer {
  void AddGold(const std::string& url, const OpenkpReferences& references) {
    gold.emplace_back(url, references);
  }
  void AddPrediction(const std::string& url,
                     const std::vector<std::string>& phrases) {
    predictions.emplace_back(url, phrases);
  }
  Metrics Scores() const { return ScoreOpenkp(gold, predictions); }

  ById<OpenkpReferences> gold;
  ById<std::vector<std::string>> predictions;
};

TEST(ScoreOpenkpTest, AveragesOverDocuments) {  // doc/openkp.md 10.9
  Scorer scorer;
  scorer.AddGold("a", StarTrekReferences());
  scorer.AddGold("b", StarTrekReferences());
  scorer.AddPrediction("a", {"1 director"});
  scorer.AddPrediction("b", {"star trek"});
  const ScoreMap scores = ToMap(scorer.Scores());
  for (const char* prefix : {"", "etc_"}) {
    const auto at = [&](const char* name) {
      return scores.at(absl::StrCat(prefix, name));
    };
    EXPECT_NEAR(at("p@1"), .5, kTolerance);
    EXPECT_NEAR(at("p@3"), 1. / 6, kTolerance);
    EXPECT_NEAR(at("p@5"), .1, kTolerance);
    EXPECT_NEAR(at("r@1"), .25, kTolerance);
    EXPECT_NEAR(at("r@5"), .25, kTolerance);
    EXPECT_NEAR(at("f1@1"), 1. / 3, kTolerance);
    EXPECT_NEAR(at("f1@3"), .2, kTolerance);
    EXPECT_NEAR(at("f1@5"), 1. / 7, kTolerance);
  }
}

// doc/openkp.md 8.3
TEST(ScoreOpenkpTest, CountsRemovedDocumentsAsZeroByEtcOnly) {
  Scorer scorer;
  OpenkpReferences removed = StarTrekReferences();
  removed.is_removed = true;
  scorer.AddGold("a", StarTrekReferences());
  scorer.AddGold("b", removed);
  for (const char* url : {"a", "b"}) {
    scorer.AddPrediction(url, {"star trek", "discovery season"});
  }
  const ScoreMap scores = ToMap(scorer.Scores());
  EXPECT_NEAR(scores.at("r@3"), 1, kTolerance);
  EXPECT_NEAR(scores.at("etc_r@3"), .5, kTolerance);
}

// doc/openkp.md 2, 8.2
TEST(ScoreOpenkpTest, TakesTheLastOrTheRichestRecordOfAUrl) {
  Scorer scorer;
  OpenkpReferences poor = StarTrekReferences();
  poor.evaluator = poor.etc = {"star trek"};
  poor.num_valid = 1;
  scorer.AddGold("a", StarTrekReferences());
  scorer.AddGold("a", poor);
  scorer.AddPrediction("a", {"1"});
  scorer.AddPrediction("a", {"star trek"});
  const ScoreMap scores = ToMap(scorer.Scores());
  EXPECT_NEAR(scores.at("r@1"), 1, kTolerance);
  EXPECT_NEAR(scores.at("etc_r@1"), .5, kTolerance);
}

// doc/openkp.md 8.2, 8.3
TEST(ScoreOpenkpTest, StripsPredictionsForTheEvaluatorAlone) {
  const std::vector<std::string> phrases = {"star trek\u00a0", "star trek", "1",
                                            "discovery season"};
  TemporaryDirectory directory;
  const auto of_file = Openkp().ReadPredictions(directory.Write(
      "predictions.jsonl", OpenkpPredictionLines({{"a", phrases}})));
  ASSERT_TRUE(of_file.ok()) << of_file.status();
  Scorer scorer;
  scorer.AddGold("a", StarTrekReferences());
  for (const auto& predictions :
       {ById<std::vector<std::string>>{{"a", phrases}}, *of_file}) {
    scorer.predictions = predictions;
    const ScoreMap scores = ToMap(scorer.Scores());
    EXPECT_EQ(scores.at("r@1"), .5);
    EXPECT_EQ(scores.at("r@3"), 1);
    EXPECT_EQ(scores.at("etc_r@1"), 0);
    EXPECT_EQ(scores.at("etc_r@3"), .5);
  }
}

class ScoreOpenkpFilesTest : public testing::Test {
 protected:
  absl::StatusOr<Metrics> Score(const std::string& gold,
                                const std::string& predictions) {
    return ScoreFiles(Openkp(), {.gold = directory_.Write("gold.jsonl", gold),
                                 .predictions = directory_.Write(
                                     "predictions.jsonl", predictions)});
  }
  std::string Message(const std::string& gold, const std::string& predictions) {
    const auto scores = Score(gold, predictions);
    EXPECT_EQ(scores.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(scores.status().message());
  }
  TemporaryDirectory directory_;
};

TEST_F(ScoreOpenkpFilesTest, ScoresOneForGoldFedBack) {
  const auto scores = Score(
      GreenTeaJson().dump() + "\n",
      R"({"url":"http://x.org/tea","KeyPhrases":[["brew green tea"],["green","TEA"]]})");
  ASSERT_TRUE(scores.ok()) << scores.status();
  EXPECT_EQ(ToMap(*scores).at("r@3"), 1);
  EXPECT_NEAR(ToMap(*scores).at("f1@3"), .8, kTolerance);
  EXPECT_NEAR(ToMap(*scores).at("etc_f1@3"), .8, kTolerance);
}

// doc/openkp.md 2, 8.3
TEST_F(ScoreOpenkpFilesTest, CountsEmptyPhrasesOnDemand) {
  const std::string gold = directory_.Write(
      "gold.jsonl",
      OpenkpJson({{"star  trek", kBoldFeature}}, {"", "star"}).dump());
  const std::string predictions =
      directory_.Write("predictions.jsonl",
                       R"({"url":"http://x.org/1","KeyPhrases":[["star"]]})");
  const ScoredFiles files = {.gold = gold, .predictions = predictions};
  const ScoreMap sound = ToMap(*ScoreFiles(Openkp(), files));
  const ScoreMap official =
      ToMap(*ScoreFiles(Openkp(), files, ScoringRules::kOfficial));
  EXPECT_EQ(sound.at("etc_r@1"), 1);
  EXPECT_EQ(official.at("etc_r@1"), .5);
  EXPECT_EQ(official.at("r@1"), 1);  // the official script drops them
}

TEST_F(ScoreOpenkpFilesTest, ScoresFilesWithoutText) {  // doc/openkp.md 10.9
  const auto scores = Score(
      R"({"url":"u","KeyPhrases":[["NBA","2K17"],["Key","Generator"],["Xbox"],[""]]})",
      R"({"url":"u","KeyPhrases":[["NBA"],["Key","Generator"],["Xbox"]]})");
  ASSERT_TRUE(scores.ok()) << scores.status();
  EXPECT_EQ(scores->size(), 9u);
  EXPECT_NEAR(ToMap(*scores).at("f1@3"), 2. / 3, kTolerance);
  EXPECT_NEAR(ToMap(*scores).at("f1@5"), .5, kTolerance);
}

// doc/openkp.md 8.2
TEST_F(ScoreOpenkpFilesTest, RefusesFilesOfOtherDocuments) {
  const std::string one = R"({"url":"one","KeyPhrases":[["a"]]})";
  const std::string two = R"({"url":"two","KeyPhrases":[["a"]]})";
  EXPECT_THAT(Message(one + "\n" + two, one), HasSubstr("none for two"));
  EXPECT_THAT(Message(one, one + "\n" + two),
              HasSubstr("has a line for two, which is no document of"));
  EXPECT_THAT(Message(one, R"({"url":"one","KeyPhrases":["a"]})"),
              HasSubstr("predictions.jsonl: record 0.KeyPhrases[0]"));
  EXPECT_THAT(Message("[1]", one), HasSubstr("gold.jsonl"));
  nlohmann::json unlabelled = GreenTeaJson();
  unlabelled.erase("KeyPhrases");
  EXPECT_THAT(Message(unlabelled.dump(), one),
              HasSubstr("gold.jsonl: record 0 is the first"));
}

TEST_F(ScoreOpenkpFilesTest, TakesUrlsThatComeAgainOnlyOfTheSamePage) {
  const std::string one = R"({"url":"one","KeyPhrases":[["a"]]})";
  EXPECT_THAT(
      Message(one + "\n" + one, one),
      HasSubstr("gold.jsonl: record 1: the id \"one\" should occur once"));
  EXPECT_THAT(Message(one, one + "\n" + one),
              HasSubstr("predictions.jsonl: record 1: the id \"one\" should"));
  // The official dev file has pages twice; by its program the last counts.
  nlohmann::json page = GreenTeaJson();
  page["KeyPhrases"] = {{"water"}};
  const std::string tea =
      R"({"url":"http://x.org/tea","KeyPhrases":[["brew green tea"],["green","TEA"]]})";
  const std::string twice = page.dump() + "\n" + GreenTeaJson().dump();
  const auto scores = Score(twice, tea);
  ASSERT_TRUE(scores.ok()) << scores.status();
  EXPECT_EQ(ToMap(*scores).at("r@3"), 1);
}

}  // namespace
}  // namespace etc
