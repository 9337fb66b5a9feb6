// train.watch_scores: statistics in the lines of the updates that it names,
// weights and losses that are the same to the bit, and the warning of scores
// beyond 10,000, once, whatever their storage. tests/attention/
// score_statistics_test.cc compares the numbers with loops in double.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "attention/score_statistics.h"
#include "nlohmann/json.hpp"
#include "tasks/train/score_statistics_json.h"
#include "tasks/train/train_step.h"
#include "tests/tasks/train/toy_run_fixture.h"

namespace etc {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

using ScoreWatchTest = ToyRunTest;

constexpr char kLargeScores[] = "attention scores reach ";

// The lines of updates.
std::vector<nlohmann::json> UpdateLines(const std::string& directory) {
  std::vector<nlohmann::json> lines;
  for (const nlohmann::json& line : MetricsLines(directory + "/seed-1")) {
    if (line.contains("loss")) {
      lines.push_back(line);
    }
  }
  return lines;
}

TEST_F(ScoreWatchTest, WritesStatisticsAtEachSoManyUpdates) {
  json_["train"]["watch_scores"] = 5;
  FakeReporter reporter;
  const auto result = Run("run", &reporter);
  ASSERT_TRUE(result.ok()) << result.status();
  std::vector<int64_t> steps;
  for (const nlohmann::json& line : UpdateLines(Output("run"))) {
    if (!line.contains("scores")) {
      continue;
    }
    steps.push_back(line["step"].get<int64_t>());
    const nlohmann::json& scores = line["scores"];
    double largest = 0;
    for (const char* block : {"g2g", "g2l", "l2g", "l2l"}) {
      SCOPED_TRACE(block);
      const nlohmann::json& numbers = scores[block];
      ASSERT_EQ(numbers["largest"].size(), 2);  // layers
      ASSERT_EQ(numbers["new_deviation"].size(), 2);
      ASSERT_EQ(numbers["carried_deviation"].size(), 2);
      EXPECT_TRUE(numbers["carried_deviation"][0].is_null());
      // The second layer is given the scores of the first, up to rounding.
      const auto of_first = numbers["new_deviation"][0].get<double>();
      EXPECT_NEAR(numbers["carried_deviation"][1].get<double>(), of_first,
                  1e-3 * of_first);
      EXPECT_GT(numbers["new_deviation"][1].get<double>(), 0);
      largest = std::max({largest, numbers["largest"][0].get<double>(),
                          numbers["largest"][1].get<double>()});
    }
    EXPECT_EQ(scores["largest"].get<double>(), largest);
    for (const char* entropy : {"long_entropy", "global_entropy"}) {
      ASSERT_EQ(scores[entropy].size(), 2);
      // At most 9 long and 2 global tokens.
      EXPECT_GT(scores[entropy][1].get<double>(), 0.5);
      EXPECT_LT(scores[entropy][1].get<double>(), std::log(11));
    }
  }
  EXPECT_THAT(steps, ElementsAre(5, 10));
  EXPECT_THAT(reporter.warnings, Not(Contains(StartsWith(kLargeScores))));
}

// Without scores that are carried, and with them; with each layer computed
// twice. EncoderStatisticsTest (etc/inspection_test.cc) has all modes with all
// periods.
TEST_F(ScoreWatchTest, ChangesNoBitOfARun) {
  for (const auto& [mode, period] : std::vector<std::pair<std::string, int>>{
           {"off", 0}, {"sum", 0}, {"mean", 1}}) {
    SCOPED_TRACE(testing::Message() << mode << ", period " << period);
    json_["residual_attention"] = mode;
    json_["model"]["grad_checkpointing_period"] = period;
    FakeReporter reporter;
    json_["train"]["watch_scores"] = 0;
    ASSERT_TRUE(Run(mode, &reporter).ok());
    json_["train"]["watch_scores"] = 1;
    ASSERT_TRUE(Run(mode + "-watched", &reporter).ok());
    std::vector<nlohmann::json> watched =
        UpdateLines(Output(mode + "-watched"));
    for (nlohmann::json& line : watched) {
      EXPECT_EQ(line["scores"]["l2l"].contains("carried_deviation"),
                mode != "off");
      EXPECT_EQ(line.erase("scores"), 1);
    }
    EXPECT_EQ(watched, UpdateLines(Output(mode)));
    const std::string last = "/seed-1/checkpoints/last/model.safetensors";
    ExpectSameTensors(Output(mode + "-watched") + last, Output(mode) + last);
  }
}

TEST_F(ScoreWatchTest, MayBeginWhereARunIsResumed) {
  FakeReporter reporter;
  reporter.stop_after = 6;
  ASSERT_TRUE(Run("run", &reporter).ok());
  json_["train"]["watch_scores"] = 4;
  FakeReporter again;
  const auto result = Run("run", &again, /*resume=*/true);
  ASSERT_TRUE(result.ok()) << result.status();
  std::vector<int64_t> steps;
  for (const nlohmann::json& line : UpdateLines(Output("run"))) {
    if (line.contains("scores")) {
      steps.push_back(line["step"].get<int64_t>());
    }
  }
  EXPECT_THAT(steps, ElementsAre(8, 12));
}

TEST_F(ScoreWatchTest, WarnsOnceOfScoresBeyondTenThousand) {
  // Queries and keys of about 80 give scores of about 20,000.
  json_["model"]["initializer_range"] = 20;
  json_["train"]["learning_rate"] = 1e-5;
  json_["train"]["watch_scores"] = 1;
  for (const char* storage : {"reverse", "store"}) {
    json_["train"]["score_storage"] = storage;
    FakeReporter reporter;
    ASSERT_TRUE(Run(storage, &reporter).ok());
    EXPECT_THAT(reporter.warnings, Contains(StartsWith(kLargeScores)).Times(1));
    const bool reverses = std::string(storage) == "reverse";
    EXPECT_THAT(reporter.warnings, Contains(AllOf(StartsWith(kLargeScores),
                                                  HasSubstr("metrics.jsonl"))));
    EXPECT_THAT(reporter.warnings,
                Contains(HasSubstr("\"recompute\"")).Times(reverses ? 1 : 0));
  }
}

TEST(ScoreWarningTextTest, IsOfTheBoundThatIsPassed) {
  EXPECT_EQ(
      ScoreWarning({.largest = kMaxReversedScore, .reverses = true}).severity,
      0);
  EXPECT_THAT(ScoreWarning({.largest = 2e4}).text, IsEmpty());
  const ModelWarning inexact =
      ScoreWarning({.largest = 3400, .watched = 3400, .reverses = true});
  EXPECT_EQ(inexact.severity, 1);
  EXPECT_THAT(inexact.text,
              AllOf(StartsWith("attention scores reach 3.4e+03: with"),
                    HasSubstr("\"recompute\"")));
  EXPECT_EQ(ScoreWarning({.largest = 1e4, .watched = 1e4}).severity, 0);
  const ModelWarning large = ScoreWarning({.largest = 2e4, .watched = 2e4});
  EXPECT_EQ(large.severity, 2);
  EXPECT_THAT(large.text, AllOf(HasSubstr("reach 2e+04: float32 rounds"),
                                Not(HasSubstr("\"recompute\""))));
  const ModelWarning both =
      ScoreWarning({.largest = 3e4, .watched = 2e4, .reverses = true});
  EXPECT_EQ(both.severity, 2);
  EXPECT_THAT(both.text, AllOf(HasSubstr("reach 3e+04: float32 rounds"),
                               HasSubstr("smaller; with train.score_storage")));
}

TEST(ScoreStatisticsJsonTest, HasWhatThereIsWithFiveDigits) {
  // BERT without residual attention: one block, nothing carried.
  LayerStatistics first;
  first.g2g = {.new_scores = {.count = 2, .sum = 2, .sum_of_squares = 4},
               .largest_score = 1.23456789};
  first.global_entropy = {.rows = 3, .sum = 1};
  LayerStatistics second = first;
  second.g2g.largest_score = 20000.04;
  EXPECT_EQ(
      ScoreStatisticsToJson({first, second}).dump(),
      R"({"largest":20000.0,"g2g":{"largest":[1.2346,20000.0],)"
      R"("new_deviation":[1.0,1.0]},"global_entropy":[0.33333,0.33333]})");
  // The second layer carries.
  second.g2g.carried_scores = {.count = 2, .sum = 0, .sum_of_squares = 8};
  EXPECT_EQ(
      ScoreStatisticsToJson({first, second})["g2g"]["carried_deviation"].dump(),
      "[null,2.0]");
}

}  // namespace
}  // namespace etc
