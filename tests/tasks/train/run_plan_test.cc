// Updates and bytes of a configuration, and schedules that are refused.

#include "tasks/train/run_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(RunPlanTest, TakesMegabytesForMillionsOfBytes) {
  DataConfig config;
  config.cache_megabytes = 1'000'000'000;
  config.max_record_megabytes = 3;
  EXPECT_EQ(CacheBytesOf(config), 1'000'000'000'000'000);
  EXPECT_EQ(RecordLimitsOf(config).max_record_bytes, 3'000'000u);
}

RunConfig SmallBatches() {
  RunConfig config;
  config.task = "toy";
  config.train.batch_size = 4;
  config.train.epochs = 2.5;
  return config;
}

TEST(RunPlanTest, CountsUpdatesAndEpochsByExpectedOrByStatedExamples) {
  RunConfig config = SmallBatches();
  const RunFiles files;
  auto plan = PlanRun(
      config,
      {.seed = 7, .num_records = 4, .num_examples = 10, .files = files});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->seed, 7);
  EXPECT_EQ(plan->loader.seed, 7u);
  EXPECT_EQ(plan->num_steps, 6);  // 10 / 4 * 2.5
  EXPECT_EQ(plan->schedule.num_steps, 6);
  EXPECT_EQ(plan->epoch_examples, 10);
  EXPECT_EQ(plan->evaluate_every, 2);
  EXPECT_EQ(plan->train, config.train);
  EXPECT_EQ(plan->optimizer, config.optimizer);
  EXPECT_EQ(plan->settings["train"]["seed"], 7);

  config.train.num_train_examples = 20;
  plan = PlanRun(
      config,
      {.seed = 7, .num_records = 4, .num_examples = 10, .files = files});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->num_steps, 12);
  EXPECT_EQ(plan->epoch_examples, 20);
  EXPECT_EQ(plan->evaluate_every, 5);

  config.train.steps = 3;
  config.train.evaluate_every = 0;
  plan = PlanRun(
      config,
      {.seed = 7, .num_records = 4, .num_examples = 10, .files = files});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->num_steps, 3);
  EXPECT_EQ(plan->evaluate_every, 0);
  EXPECT_FALSE(plan->evaluate_at_start);
}

TEST(RunPlanTest, EvaluatesTheFirstWeightsOfARunWithoutAnUpdate) {
  RunConfig config = SmallBatches();
  config.train.steps = 0;
  config.schedule.warmup_steps = 5;
  const RunFiles files;
  const auto plan =
      PlanRun(config, {.num_records = 1, .num_examples = 1, .files = files});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->num_steps, 0);
  EXPECT_TRUE(plan->evaluate_at_start);
  EXPECT_EQ(MostCheckpoints(config, 1), 1);
}

TEST(RunPlanTest, CountsThoseOfATrialWhateverIsStated) {
  RunConfig config = SmallBatches();
  config.train.num_train_examples = 44000;
  config.train.max_examples = 8;
  const RunFiles files;
  const auto plan =
      PlanRun(config, {.num_records = 8, .num_examples = 8, .files = files});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->num_steps, 5);  // 8 / 4 * 2.5
  EXPECT_EQ(plan->epoch_examples, 8);
  EXPECT_EQ(plan->evaluate_every, 2);
  EXPECT_EQ(ExamplesWarning(config, 8), "");
}

TEST(RunPlanTest, WarnsOfAStatedNumberThatIsFarFromTheCountedOne) {
  RunConfig config = SmallBatches();
  EXPECT_EQ(ExamplesWarning(config, 11), "");
  config.train.num_train_examples = 1000;
  EXPECT_EQ(ExamplesWarning(config, 950), "");
  EXPECT_EQ(ExamplesWarning(config, 1050), "");
  for (const int64_t counted : {11, 949, 1051}) {
    EXPECT_THAT(
        ExamplesWarning(config, counted),
        HasSubstr(absl::StrCat("is 1000, but data.train comes to ", counted,
                               "; --set train.num_train_examples=null "
                               "counts epochs by these")));
  }
}

TEST(RunPlanTest, CountsTheEvaluationsThatAreLeft) {
  RunPlan plan = {.num_steps = 10, .evaluate_every = 4};
  EXPECT_EQ(EvaluationsFrom(plan, 1), 3);  // after 4, 8 and 10 updates
  EXPECT_EQ(EvaluationsFrom(plan, 4), 3);
  EXPECT_EQ(EvaluationsFrom(plan, 5), 2);
  EXPECT_EQ(EvaluationsFrom(plan, 10), 1);
  plan.evaluate_every = 5;
  EXPECT_EQ(EvaluationsFrom(plan, 1), 2);
  plan.evaluate_every = 0;  // at the end
  EXPECT_EQ(EvaluationsFrom(plan, 1), 1);
  EXPECT_EQ(EvaluationsFrom(plan, 10), 1);
  plan.num_steps = 0;  // the first weights alone, by evaluate_at_start
  EXPECT_EQ(EvaluationsFrom(plan, 1), 0);
}

TEST(RunPlanTest, CountsTheCheckpointsOfARun) {
  RunConfig config = SmallBatches();
  // The second, the fourth and the sixth of 6 updates end an epoch; the first
  // and the last weights.
  EXPECT_EQ(MostCheckpoints(config, 10), 3 + 2);
  config.train.checkpoint_every = 3;
  EXPECT_EQ(MostCheckpoints(config, 10), 3 + 2 + 2);
  // Not more than weights.
  config.train.checkpoint_every = 1;
  EXPECT_EQ(MostCheckpoints(config, 10), 6 + 1);
  config.train.evaluate_every = 0;
  config.train.checkpoint_every = 0;
  EXPECT_EQ(MostCheckpoints(config, 10), 2);
}

TEST(RunPlanTest, TakesAWarmUpInUpdatesOrAsAShare) {
  RunConfig config = SmallBatches();
  const RunFiles files;
  const RunInputs inputs = {
      .num_records = 10, .num_examples = 10, .files = files};
  config.schedule.type = "cosine";
  config.schedule.warmup_proportion = 0.5;
  EXPECT_EQ(PlanRun(config, inputs)->schedule.warmup_steps, 3);
  EXPECT_EQ(PlanRun(config, inputs)->schedule.type, ScheduleType::kCosine);
  config.schedule.warmup_steps = 6;
  EXPECT_EQ(PlanRun(config, inputs)->schedule.warmup_steps, 6);
  config.schedule.warmup_steps = 7;
  EXPECT_THAT(std::string(PlanRun(config, inputs).status().message()),
              HasSubstr("schedule.warmup_steps should be at most the updates "
                        "of the run (6), but is 7"));
}

TEST(RunPlanTest, TakesTheDirectionOfAMetricFromItsName) {
  TrainConfig config;
  EXPECT_EQ(MainMetricOf(config, "f1").name, "f1");
  EXPECT_FALSE(MainMetricOf(config, "f1").lower_is_better);
  for (const char* name :
       {"loss", "sentence_loss", "mse", "error_rate", "word_error_rate"}) {
    config.main_metric = name;
    EXPECT_EQ(MainMetricOf(config, "f1").name, name);
    EXPECT_TRUE(MainMetricOf(config, "f1").lower_is_better);
  }
  config.main_metric_direction = "max";
  EXPECT_FALSE(MainMetricOf(config, "f1").lower_is_better);
}

TEST(RunPlanTest, RefusesFieldsOfTheScheduleThatDecideNothing) {
  const auto message = [](const std::string& schedule) {
    const auto config =
        RunConfigFromJson({{"task", "toy"},
                           {"model", {{"vocab_size", 9}}},
                           {"schedule", nlohmann::json::parse(schedule)}},
                          "a.json");
    EXPECT_TRUE(config.ok()) << config.status();
    return std::string(CheckSchedule(*config).message());
  };
  EXPECT_THAT(message(R"({"min_learning_rate": 1e-6})"),
              AllOf(HasSubstr("a.json: schedule.min_learning_rate"),
                    HasSubstr("decides nothing with schedule.type \"poly\"")));
  EXPECT_THAT(message(R"({"type": "linear", "poly_power": 2})"),
              HasSubstr("schedule.poly_power"));
  EXPECT_THAT(message(R"({"initial_learning_rate": 1e-7, "warmup_steps": 0})"),
              AllOf(HasSubstr("schedule.initial_learning_rate"),
                    HasSubstr("decides nothing without a warm-up")));
  EXPECT_THAT(message(R"({"start_warmup_step": 3, "warmup_proportion": 0})"),
              HasSubstr("schedule.start_warmup_step"));
  for (const char* schedule :
       {R"({"type": "cosine", "poly_power": 1, "min_learning_rate": 1e-6})",
        R"({"poly_power": 2, "min_learning_rate": 0, "warmup_steps": 0})",
        R"({"initial_learning_rate": 1e-7, "start_warmup_step": 3})",
        R"({"type": "inverse_sqrt", "warmup_steps": 0,
            "start_warmup_step": 3})"}) {
    EXPECT_EQ(message(schedule), "") << schedule;
  }
}

TEST(RunPlanTest, RefusesARunWithoutUpdates) {
  RunConfig config = SmallBatches();
  config.train.epochs = 0.25;
  const RunFiles files;
  const absl::Status status =
      PlanRun(config, {.num_records = 10, .num_examples = 10, .files = files})
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("train.epochs (0.25) come to no update"),
                    HasSubstr("have 10 records and train.batch_size is 4")));
}

}  // namespace
}  // namespace etc
