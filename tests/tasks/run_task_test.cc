// The benchmarks as a library, against the program: the same scores,
// predictions and mistakes. What training computes is tested in
// tests/tasks/train.
#include "tasks/run_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/support/realetc_program.h"

namespace etc {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class RunTaskTest : public RealetcTest {
 protected:
  // Fine-tunes the tiny configuration.
  FinetuneTaskResult Tuned(const std::vector<std::string>& overrides = {}) {
    auto result =
        FinetuneTask({.config = WriteConfig(Config()),
                      .overrides = overrides,
                      .callbacks = {.message = [&](const std::string& line) {
                        messages_.push_back(line);
                      }}});
    EXPECT_TRUE(result.ok()) << result.status();
    return result.value_or(FinetuneTaskResult());
  }

  // What the program says of the same run.
  json ProgramScores(const std::string& options) const {
    const Result result =
        Run(absl::StrCat("evaluate ", run_, options, " --json"));
    EXPECT_EQ(result.code, 0) << result.err;
    return json::parse(result.out, nullptr, /*allow_exceptions=*/false);
  }

  const std::string run_ = directory_.File("run");
  std::vector<std::string> messages_;
};

json AsJson(const Metrics& scores) {
  json object = json::object();
  for (const auto& [name, value] : scores) {
    object[name] = value;
  }
  return object;
}

TEST_F(RunTaskTest, FinetunesEvaluatesAndScoresAsTheProgramDoes) {
  const FinetuneTaskResult tuned = Tuned();
  EXPECT_TRUE(tuned.finished);
  EXPECT_THAT(tuned.directories, ElementsAre(run_ + "/seed-1"));
  EXPECT_THAT(messages_, Contains(HasSubstr("accuracy")));
  const json program = ProgramScores("");
  EXPECT_EQ(AsJson(tuned.scores), program);

  const auto evaluated = EvaluateTask({.checkpoint = run_});
  ASSERT_TRUE(evaluated.ok()) << evaluated.status();
  EXPECT_EQ(evaluated->num_examples, 6);
  EXPECT_EQ(AsJson(evaluated->scores), program);
  const std::string predictions = directory_.File("predictions.json");
  const std::string data = directory_.File("data.json");
  EXPECT_EQ(Run(absl::StrCat("predict ", run_, " --data ", data, " --output ",
                             predictions))
                .code,
            0);
  EXPECT_EQ(evaluated->predictions, Contents(predictions));

  const auto scored = ScoreTask("wikihop", data, predictions);
  ASSERT_TRUE(scored.ok()) << scored.status();
  EXPECT_EQ(AsJson(*scored).value("accuracy", -1.0),
            program.value("accuracy", -2.0));
}

TEST_F(RunTaskTest, WarnsOfScoresThatTheModelWasNotTrainedWith) {
  Tuned();
  std::vector<std::string> warnings;
  const auto evaluated =
      EvaluateTask({.checkpoint = run_,
                    .residual_attention = "off",
                    .callbacks = {.warning = [&](const std::string& line) {
                      warnings.push_back(line);
                    }}});
  ASSERT_TRUE(evaluated.ok()) << evaluated.status();
  EXPECT_THAT(warnings,
              ElementsAre(StartsWith("residual attention: trained with sum")));
  EXPECT_EQ(AsJson(evaluated->scores), ProgramScores(" --residual off"));
}

TEST_F(RunTaskTest, StopsAndGoesOn) {
  const std::atomic<bool> stop = true;
  const std::string config = WriteConfig(Config());
  const auto stopped =
      FinetuneTask({.config = config, .callbacks = {.stop = &stop}});
  EXPECT_TRUE(!stopped.ok() ? absl::IsCancelled(stopped.status())
                            : !stopped->finished && stopped->scores.empty());
  const auto resumed = FinetuneTask({.config = config, .resume = true});
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_TRUE(resumed->finished);
}

TEST_F(RunTaskTest, SaysWhatIsWrong) {
  EXPECT_EQ(
      FinetuneTask({.config = directory_.File("none.json")}).status().code(),
      absl::StatusCode::kNotFound);
  const auto mistaken = FinetuneTask(
      {.config = WriteConfig(Config()), .overrides = {"train.stepz=2"}});
  EXPECT_THAT(mistaken.status().ToString(), HasSubstr("stepz"));
  EXPECT_EQ(
      EvaluateTask({.checkpoint = directory_.File("none")}).status().code(),
      absl::StatusCode::kNotFound);
  EXPECT_EQ(ScoreTask("wikihopp", "a", "b").status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace etc
