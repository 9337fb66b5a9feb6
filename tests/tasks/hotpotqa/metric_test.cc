// The official metric to the golden values of doc/hotpotqa.md 10.7, the rules
// for what is missing, and files of other systems.

#include "tasks/hotpotqa/metric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tasks/data/record_file.h"
#include "tasks/hotpotqa/task.h"
#include "tasks/task/score_files.h"
#include "tests/support/shared_data.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/hotpotqa/spec_record.h"

namespace etc {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct AnswerCase {
  const char* predicted;
  const char* gold;
  double exact, f1, precision, recall;
};

class ScoreHotpotqaAnswerTest : public testing::TestWithParam<AnswerCase> {};

TEST_P(ScoreHotpotqaAnswerTest, MatchesTheGoldenValues) {
  const AnswerCase& expected = GetParam();
  const HotpotqaPartScore score =
      ScoreHotpotqaAnswer(expected.predicted, expected.gold);
  EXPECT_EQ(score.exact, expected.exact);
  EXPECT_DOUBLE_EQ(score.overlap.f1(), expected.f1);
  EXPECT_DOUBLE_EQ(score.overlap.precision, expected.precision);
  EXPECT_DOUBLE_EQ(score.overlap.recall, expected.recall);
}

INSTANTIATE_TEST_SUITE_P(  // doc/hotpotqa.md 10.7
    Spec, ScoreHotpotqaAnswerTest,
    testing::ValuesIn(std::vector<AnswerCase>{
        {"U.S.A.", "USA", 1, 1, 1, 1},
        {"The Eiffel-Tower", "eiffel tower", 0, 0, 0, 0},
        {"new york city", "New York", 0, 0.8, 2.0 / 3, 1},
        {"yes", "Yes.", 1, 1, 1, 1},
        {"yes sir", "yes", 0, 0, 0, 0},
        {"the the cat", "cat", 1, 1, 1, 1},
        {"The", "a", 1, 0, 0, 0},
        {"no", "no way", 0, 0, 0, 0},
        {"noanswer", "noanswer given", 0, 0, 0, 0}}));

TEST(ScoreHotpotqaFactsTest, MatchesTheGoldenValues) {  // doc/hotpotqa.md 10.7
  const HotpotqaPartScore facts = ScoreHotpotqaFacts(
      {{"A", 0}, {"B", 1}, {"C", 0}, {"A", 0}}, {{"A", 0}, {"B", 1}});
  EXPECT_EQ(facts.exact, 0);
  EXPECT_DOUBLE_EQ(facts.overlap.precision, 2.0 / 3);
  EXPECT_DOUBLE_EQ(facts.overlap.recall, 1);
  EXPECT_DOUBLE_EQ(facts.overlap.f1(), 0.8);

  const HotpotqaPartScore joint = JointHotpotqaScore(
      {.exact = 1, .overlap = {.precision = 2.0 / 3, .recall = 1}}, facts);
  EXPECT_EQ(joint.exact, 0);
  EXPECT_DOUBLE_EQ(joint.overlap.precision, 4.0 / 9);
  EXPECT_DOUBLE_EQ(joint.overlap.recall, 1);
  EXPECT_NEAR(joint.overlap.f1(), 0.615385, 1e-6);
}

TEST(ScoreHotpotqaFactsTest, HasNoDivisionByZero) {
  const HotpotqaPartScore none = ScoreHotpotqaFacts({}, {});
  EXPECT_EQ(none.exact, 1);
  EXPECT_EQ(none.overlap.f1(), 0);
  EXPECT_EQ(ScoreHotpotqaFacts({{"A", 0}}, {{"A", 1}}).overlap.f1(), 0);
}

std::map<std::string, double> AsMap(
    const std::vector<std::pair<std::string, double>>& scores) {
  return {scores.begin(), scores.end()};
}

// Gold: a span, yes, no.
class HotpotqaScoreTest : public testing::Test {
 protected:
  std::string WriteGold() {
    nlohmann::json gold = nlohmann::json::array();
    int number = 0;
    for (const std::string answer : {"Jane Roe", "yes", "no"}) {
      gold.push_back(nlohmann::json::parse(kHotpotqaSpecJson));
      gold.back()["_id"] = std::string("q") + std::to_string(number++);
      gold.back()["answer"] = answer;
    }
    return directory_.Write("gold.json", gold.dump());
  }

  absl::StatusOr<Metrics> Score(const std::string& predictions,
                                ScoringRules rules = {}) {
    return ScoreFiles(
        Hotpotqa(),
        {.gold = WriteGold(),
         .predictions = directory_.Write("predictions.json", predictions)},
        rules);
  }

  TemporaryDirectory directory_;
};

TEST_F(HotpotqaScoreTest, DividesByAllGoldQuestions) {
  // q0 right but for one fact, q1 without facts, q2 without an answer.
  const auto score = Score(
      R"({"answer":{"q0":"roe jane","q1":"yes"},"sp":)"
      R"({"q0":[["Acme",0]],"q2":[["Acme",0],["Jane Roe",1]]},"extra":1})");
  ASSERT_TRUE(score.ok()) << score.status();
  const auto means = AsMap(*score);
  EXPECT_DOUBLE_EQ(means.at("em"), 1.0 / 3);
  EXPECT_DOUBLE_EQ(means.at("f1"), 2.0 / 3);
  EXPECT_DOUBLE_EQ(means.at("sp_em"), 1.0 / 3);
  EXPECT_DOUBLE_EQ(means.at("sp_prec"), 2.0 / 3);
  EXPECT_DOUBLE_EQ(means.at("sp_recall"), 0.5);
  EXPECT_DOUBLE_EQ(means.at("joint_em"), 0);
  EXPECT_DOUBLE_EQ(means.at("joint_prec"), 1.0 / 3);
  EXPECT_DOUBLE_EQ(means.at("joint_recall"), 0.5 / 3);
  EXPECT_DOUBLE_EQ(means.at("joint_f1"), 2.0 / 9);
  // 12 official ones, the two of what is there, and three kinds.
  EXPECT_EQ(means.size(), 17u);
  EXPECT_DOUBLE_EQ(means.at("answered"), 2.0 / 3);
  EXPECT_DOUBLE_EQ(means.at("sp_answered"), 2.0 / 3);
  EXPECT_EQ(means.at("kinds/A_B"), 1);
  EXPECT_EQ(means.at("kinds/Y_Y"), 1);
  EXPECT_EQ(means.at("kinds/N_E"), 1);
}

TEST_F(HotpotqaScoreTest, CountsEmptyAnswersAsNone) {
  const auto score = Score(R"({"answer":{"q0":"Jane Roe","q1":"","q2":"no"},)"
                           R"("sp":{"q0":[["Acme",0]],"q1":[],"q2":[]}})");
  ASSERT_TRUE(score.ok()) << score.status();
  const auto means = AsMap(*score);
  EXPECT_DOUBLE_EQ(means.at("answered"), 2.0 / 3);
  EXPECT_DOUBLE_EQ(means.at("sp_answered"), 1.0 / 3);
  EXPECT_DOUBLE_EQ(means.at("em"), 2.0 / 3);
}

// The official program stops at such gold. Taken for "no facts", it would give
// an empty prediction an sp_em of 1 and any joint F1 of 0.
TEST_F(HotpotqaScoreTest, RefusesGoldWithoutSupportingFacts) {
  nlohmann::json record = nlohmann::json::parse(kHotpotqaSpecJson);
  record.erase("supporting_facts");
  const std::string gold =
      directory_.Write("gold.json", nlohmann::json::array({record}).dump());
  EXPECT_THAT(
      ScoreFiles(Hotpotqa(), {.gold = gold,
                              .predictions = directory_.Write(
                                  "p.json", R"({"answer":{},"sp":{}})")})
          .status()
          .message(),
      HasSubstr("gold.json: record 0.supporting_facts is missing"));
}

// Predictions for another data set, none of which would be scored.
TEST_F(HotpotqaScoreTest, RefusesOtherQuestionsButByTheOfficialRules) {
  for (const char* predictions :
       {R"({"answer":{"other":"x"},"sp":{}})",
        R"({"answer":{},"sp":{"other":[["Acme",0]]}})"}) {
    EXPECT_THAT(Score(predictions).status().message(),
                HasSubstr("other is predicted, but is no question of " +
                          directory_.File("gold.json")));
    const auto official = Score(predictions, ScoringRules::kOfficial);
    ASSERT_TRUE(official.ok()) << official.status();
    const auto means = AsMap(*official);
    EXPECT_EQ(means.at("answered"), 0);
    EXPECT_EQ(means.at("sp_answered"), 0);
  }
}

TEST_F(HotpotqaScoreTest, SaysWhatIsWrongWithAFile) {
  EXPECT_THAT(Score("[]").status().message(),
              AllOf(HasSubstr("predictions.json should be {\"answer\"")));
  EXPECT_THAT(Score(R"({"answer":{}})").status().message(),
              HasSubstr("has no \"sp\""));
  EXPECT_THAT(Score(R"({"answer":[],"sp":{}})").status().message(),
              HasSubstr("has another \"answer\""));
  EXPECT_THAT(Score(R"({"answer":{"q1":7},"sp":{}})").status().message(),
              HasSubstr("answer.q1 should be a string, but is number"));
  EXPECT_THAT(Score(R"({"answer":{},"sp":{"q2":[["A"]]}})").status().message(),
              HasSubstr("sp.q2[0] should be [\"title\", sentence number]"));
  const std::string gold = directory_.Write(
      "test.json", R"([{"_id":"a","question":"q","context":[]}])");
  EXPECT_THAT(
      ScoreFiles(Hotpotqa(), {.gold = gold,
                              .predictions = directory_.Write(
                                  "p.json", R"({"answer":{},"sp":{}})")})
          .status()
          .message(),
      HasSubstr("test.json: record 0 is the first"));
}

TEST_F(HotpotqaScoreTest, IsOneForTheGoldOfEveryRealQuestion) {
  for (const std::string name :
       {"hotpot_dev_distractor_v1", "hotpot_train_v1.1"}) {
    ETC_SHARED_DATA_OR_SKIP(const std::string path,
                            "data/hotpotqa/" + name + ".sample.json");
    const auto file = RecordFile::Open(path);
    ASSERT_TRUE(file.ok()) << file.status();
    nlohmann::json predictions = {{"answer", nlohmann::json::object()},
                                  {"sp", nlohmann::json::object()}};
    for (int64_t i = 0; i < file->size(); ++i) {
      const auto text = file->Read(i);
      ASSERT_TRUE(text.ok()) << text.status();
      const auto gold = nlohmann::json::parse(*text);
      const std::string id = gold["_id"];
      predictions["answer"][id] = gold["answer"];
      predictions["sp"][id] = gold["supporting_facts"];
    }
    const auto score = ScoreFiles(
        Hotpotqa(),
        {.gold = path,
         .predictions = directory_.Write("gold.json", predictions.dump())});
    ASSERT_TRUE(score.ok()) << score.status();
    for (const auto& [metric, value] : *score) {
      EXPECT_DOUBLE_EQ(value, 1.0) << name << " " << metric;
    }
  }
}

}  // namespace
}  // namespace etc
