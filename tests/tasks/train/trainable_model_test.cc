// The trainer with a model that is no TaskModel, and with examples that differ
// from epoch to epoch: it learns; its checkpoints hold what it and the trainer
// write; a run that was stopped in the middle of an epoch goes on to the very
// bits of one that was not. Dropout is on.

#include <torch/types.h>
#include <torch/utils.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/train/optimizer.h"
#include "tasks/train/run_claims.h"
#include "tasks/train/task_model.h"
#include "tasks/train/train_step.h"
#include "tasks/train/trainer.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/train/toy_masking.h"
#include "tests/tasks/train/toy_run.h"

namespace etc {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;

// Epochs of 5 batches, in pools of 2.
constexpr int64_t kRecords = 41;

RunPlan MakePlan(int64_t num_steps) {
  return {
      .num_steps = num_steps,
      .epoch_examples = kRecords,
      .evaluate_every = num_steps / 3,
      .optimizer = {.type = "adamw"},
      .schedule = {.learning_rate = 0.05, .num_steps = num_steps},
      .loader = {.batch_size = 8, .micro_batch_size = 3, .bucket_batches = 2},
      .settings = {{"train", {{"steps", num_steps}}}}};
}

class TrainableModelTest : public testing::Test {
 protected:
  absl::StatusOr<RunResult> Run(const RunPlan& plan, const std::string& name,
                                FakeReporter* reporter, bool resume = false) {
    const CachedSource train(&records_, /*max_bytes=*/1 << 20);
    const EarlierRun earlier =
        resume ? EarlierRun::kResume : EarlierRun::kRefuse;
    const auto lock = ClaimRunDirectory(temporary_.File(name), earlier);
    if (!lock.ok()) {
      return lock.status();
    }
    return TrainOneSeed(
        {.plan = plan,
         .train = train,
         .make_model = MakeMaskedModel,
         .evaluate =
             [this](TrainableModel* model) {
               return EvaluateMasked(model, records_);
             },
         .main_metric = {"accuracy"},
         .directory = temporary_.File(name),
         .lock = &*lock,
         .runs = {.earlier = earlier,
                  .context = {.reporter = reporter, .stop = &reporter->stop}}});
  }

  std::string Last(const std::string& name) const {
    return temporary_.File(name) + "/checkpoints/last";
  }

  TemporaryDirectory temporary_;
  const MaskedSentences records_{kRecords};
};

TEST_F(TrainableModelTest, LearnsAndKeepsWhatItPromises) {
  FakeReporter reporter;
  const auto result = Run(MakePlan(/*num_steps=*/150), "run", &reporter);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->finished);
  EXPECT_THAT(reporter.messages, Contains("masked model: random weights"));
  EXPECT_THAT(reporter.messages, Contains(HasSubstr("accuracy ")));
  // One in twelve would be chance.
  EXPECT_GE(result->last[0].second, 0.95);
  for (const char* file : {"/model.safetensors", "/training_state.safetensors",
                           "/evaluation.json"}) {
    EXPECT_TRUE(fs::exists(Last("run") + file)) << file;
  }
  EXPECT_FALSE(fs::exists(Last("run") + "/predictions.json"));
}

TEST_F(TrainableModelTest, GoesOnBitForBitWithExamplesThatChange) {
  const RunPlan plan = MakePlan(/*num_steps=*/12);
  FakeReporter straight;
  ASSERT_TRUE(Run(plan, "straight", &straight).ok());
  // Within a pool, between two, and in the second epoch.
  for (const int64_t stop_after : {1, 2, 8}) {
    const std::string name = absl::StrCat("stopped-", stop_after);
    FakeReporter first;
    first.stop_after = stop_after;
    const auto stopped = Run(plan, name, &first);
    ASSERT_TRUE(stopped.ok()) << stopped.status();
    EXPECT_EQ(stopped->steps, stop_after);
    RunPlan with_workers = plan;
    with_workers.loader.workers = 3;
    FakeReporter second;
    const auto resumed = Run(with_workers, name, &second, /*resume=*/true);
    ASSERT_TRUE(resumed.ok()) << resumed.status();
    EXPECT_EQ(MetricsLines(temporary_.File(name)),
              MetricsLines(temporary_.File("straight")));
    for (const std::string file :
         {"/model.safetensors", "/training_state.safetensors"}) {
      const NamedTensors expected = ReadAll(Last("straight") + file);
      const NamedTensors tensors = ReadAll(Last(name) + file);
      ASSERT_EQ(tensors.size(), expected.size());
      EXPECT_GE(tensors.size(), 3);
      for (const auto& [tensor_name, tensor] : tensors) {
        EXPECT_TRUE(torch::equal(tensor, expected.at(tensor_name)))
            << tensor_name << ", stopped after " << stop_after;
      }
    }
  }
}

TEST_F(TrainableModelTest, RefusesToGoOnWithOtherSettings) {
  FakeReporter reporter;
  reporter.stop_after = 3;
  ASSERT_TRUE(Run(MakePlan(12), "run", &reporter).ok());
  FakeReporter other;
  EXPECT_THAT(
      Run(MakePlan(15), "run", &other, /*resume=*/true).status().ToString(),
      HasSubstr("another train.steps: it began with 12, now it is 15"));
}

TEST(EvaluationModeTest, GivesTheModeBack) {
  MaskedModel model;
  for (const bool training : {true, false}) {
    model.SetTraining(training);
    {
      const EvaluationMode mode(&model);
      EXPECT_FALSE(model.is_training());
    }
    EXPECT_EQ(model.is_training(), training);
  }
}

// The losses of the step are those of the model, at the parameters before it.
TEST(TrainStepOfAnyModelTest, MovesTheParametersAlongTheGradientOfTheLosses) {
  torch::manual_seed(2);
  MaskedModel model;
  const MaskedSentences records(8);
  TrainingBatch batch;
  for (int64_t record = 0; record < 8; ++record) {
    const auto examples = records.Make({.record = record, .key = 7});
    ASSERT_TRUE(examples.ok());
    batch.micro_batches.push_back(*examples);
  }
  auto optimizer =
      std::make_unique<Optimizer>(OptimizerConfig(), model.NamedParameters());
  TrainStep train_step(&model, std::move(optimizer),
                       {.schedule = {.learning_rate = 0.01, .num_steps = 10}});
  double before = 0;
  double after = 0;
  const auto add_losses = [&](double* sum) {
    const torch::NoGradGuard no_grad;
    const EvaluationMode mode(&model);
    for (const Examples& examples : batch.micro_batches) {
      const Batch one = MakeBatch(examples);
      *sum += model.Loss(model.Forward(one), one, {1.0}).item<double>();
    }
  };
  add_losses(&before);
  const auto result = train_step.Run(batch, /*step=*/0, /*stop=*/nullptr);
  ASSERT_TRUE(result.ok() && result->has_value()) << result.status();
  add_losses(&after);
  EXPECT_LT(after, before);
  EXPECT_EQ((*result)->examples, 8);
  // 0.1 dropout moves the mean loss of the step by less than this.
  EXPECT_NEAR((*result)->loss, before / 8, 0.2);
}

}  // namespace
}  // namespace etc
