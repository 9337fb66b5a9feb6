// Prediction files and their scores (doc/wikihop.md 8, 9): what is written is
// the official submission, and scoring it gives the share of right answers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tasks/data/record_file.h"
#include "tasks/task/score_files.h"
#include "tasks/wikihop/task.h"
#include "tests/support/shared_data.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(WikihopDecodeTest, TakesTheFirstMaximumOfCandidatesOnly) {
  auto example = std::make_shared<WikihopExample>();
  example->candidates = {"a", "b", "c"};
  const std::vector<float> logits = {-3.0f, -1.0f, -1.0f, 7.0f};
  const Wikihop::Output output = {.example = example,
                                  .logits = {.candidates = logits}};
  EXPECT_EQ(Wikihop().Decode({&output, 1}), "b");
}

TEST(WikihopPredictionsTest, AreTheOfficialSubmission) {
  EXPECT_EQ(Wikihop().FileContents({.predictions = {{"WH_dev_1", "z\u00fcrich"},
                                                    {"WH_dev_0", "a \"b\""}}}),
            "{\"WH_dev_1\":\"z\\u00fcrich\",\"WH_dev_0\":\"a \\\"b\\\"\"}\n");
  EXPECT_EQ(Wikihop().FileContents({}), "{}\n");
  // The last answer for an id counts, at its first place.
  EXPECT_EQ(Wikihop().FileContents(
                {.predictions = {{"b", "x"}, {"a", "y"}, {"b", "z"}}}),
            "{\"b\":\"z\",\"a\":\"y\"}\n");
}

class ScoreWikihopTest : public testing::Test {
 protected:
  static constexpr const char* kGold =
      R"([{"id":"q0","query":"x","supports":[],"candidates":[" Oslo","Rome"],)"
      R"("answer":"rome"},
          {"id":"q1","query":"x","supports":[],"candidates":["oslo","OSLO"],)"
      R"("answer":"oslo"}])";

  absl::StatusOr<Metrics> Score(const std::string& predictions,
                                const std::string& gold = kGold) {
    return ScoreFiles(Wikihop(), {.gold = directory_.Write("gold.json", gold),
                                  .predictions = directory_.Write(
                                      "predictions.json", predictions)});
  }

  std::string Message(const std::string& predictions,
                      const std::string& gold = kGold) {
    const absl::Status status = Score(predictions, gold).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  }

  TemporaryDirectory directory_;
};

TEST_F(ScoreWikihopTest, ComparesStrippedLowerCaseText) {
  const auto score = Score(R"({"q0": " Rome\n", "q1": "Oslo"})");
  ASSERT_TRUE(score.ok()) << score.status();
  EXPECT_THAT(*score,
              ElementsAre(Pair("accuracy", 1.0), Pair("answered", 1.0)));
}

TEST_F(ScoreWikihopTest, CountsWrongAndAbsentAnswersAsWrong) {
  const auto score = Score(R"({"q0": "oslo"})");
  ASSERT_TRUE(score.ok()) << score.status();
  EXPECT_THAT(*score,
              ElementsAre(Pair("accuracy", 0.0), Pair("answered", 0.5)));
  EXPECT_THAT(*Score(R"({"q1": "oslo"})"),
              ElementsAre(Pair("accuracy", 0.5), Pair("answered", 0.5)));
}

TEST_F(ScoreWikihopTest, HasAScoreOfNoQuestions) {
  const auto score = Score("{}", "[]");
  ASSERT_TRUE(score.ok()) << score.status();
  EXPECT_THAT(*score,
              ElementsAre(Pair("accuracy", 0.0), Pair("answered", 0.0)));
}

TEST_F(ScoreWikihopTest, RefusesPredictionsOfOtherForm) {
  EXPECT_THAT(Message("[]"), HasSubstr("predictions.json should be an object"));
  EXPECT_THAT(Message(R"({"q0": 1})"), HasSubstr("q0 should be a string"));
  EXPECT_THAT(Message(R"({"q0": "rome", "q0": "oslo"})"), HasSubstr("q0"));
  EXPECT_THAT(Message(R"({"q0": )"), HasSubstr("predictions.json:1"));
}

TEST_F(ScoreWikihopTest, RefusesPredictionsForOtherQuestions) {
  EXPECT_THAT(Message(R"({"q0": "rome", "q7": "oslo"})"),
              HasSubstr("q7 is predicted, but is no question of"));
}

TEST_F(ScoreWikihopTest, RefusesGoldWithoutOrWithDoubledAnswers) {
  const std::string unlabelled =
      R"({"id":"q0","query":"x","supports":[],"candidates":["oslo"]})";
  EXPECT_THAT(Message("{}", unlabelled),
              AllOf(HasSubstr("no record of "), HasSubstr("record 0")));
  const std::string labelled =
      R"({"id":"q0","query":"x","supports":[],"candidates":["y"],"answer":"y"})";
  EXPECT_THAT(Message("{}", labelled + "\n" + labelled),
              AllOf(HasSubstr("record 1: the id \"q0\" should occur once, but "
                              "is that of "),
                    HasSubstr("record 0 too")));
}

TEST(ScoreWikihopRealTest, GivesGoldAnswersFullMarks) {
  for (const std::string name : {"dev", "train"}) {
    ETC_SHARED_DATA_OR_SKIP(const std::string path,
                            "data/wikihop/" + name + ".sample.json");
    const auto file = RecordFile::Open(path);
    ASSERT_TRUE(file.ok()) << file.status();
    ById<std::string> gold;
    for (int64_t i = 0; i < file->size(); ++i) {
      const auto answer =
          Wikihop().ParseGold(*file->Read(i), file->Where(i), {});
      ASSERT_TRUE(answer.ok()) << answer.status();
      gold.emplace_back(answer->first, *answer->second);
    }
    TemporaryDirectory directory;
    const auto score = ScoreFiles(
        Wikihop(),
        {.gold = path,
         .predictions = directory.Write(
             "p.json", Wikihop().FileContents({.predictions = gold}))});
    ASSERT_TRUE(score.ok()) << score.status();
    EXPECT_EQ(static_cast<int64_t>(gold.size()), file->size());
    EXPECT_THAT(*score,
                ElementsAre(Pair("accuracy", 1.0), Pair("answered", 1.0)));
  }
}

}  // namespace
}  // namespace etc
