// One update: gradients added over micro-batches are those of the whole batch,
// the loss is the mean of doc/wikihop.md 6, the step follows schedule and
// clipping, random numbers follow from seed and step, an update that is stopped
// or not finite changes nothing, and one without a whole gradient is refused.
// Tolerances: float32 sums in another order.

#include "tasks/train/train_step.h"

#include <c10/util/Exception.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "etc/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/data/batch.h"
#include "tasks/train/task_model.h"
#include "tests/tasks/train/toy_task.h"

namespace etc {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class TrainStepTest : public testing::Test {
 protected:
  TrainStepTest() {
    auto config = RunConfigFromJson(ToyConfigJson("a", "b", ""), "toy");
    EXPECT_TRUE(config.ok()) << config.status();
    config_ = *std::move(config);
    SetDropout(0);
  }

  void SetDropout(double probability) {
    config_.model.hidden_dropout_prob = probability;
    config_.model.attention_probs_dropout_prob = probability;
  }

  TaskModel MakeModel(const std::string& nan_record = "") const {
    torch::manual_seed(11);
    ToyTask task(config_.model);
    task.nan_record = nan_record;
    return MakeTaskModel(config_, task);
  }

  // `size` examples in micro-batches of `micro_batch_size`.
  TrainingBatch MakeTrainingBatch(int64_t size,
                                  int64_t micro_batch_size) const {
    const ToyTask task(config_.model);
    TrainingBatch batch;
    int64_t made = 0;
    for (const absl::string_view line :
         absl::StrSplit(ToyRecords(size, 3), '\n', absl::SkipEmpty())) {
      auto examples = task.MakeExamples(std::string(line), "toy");
      EXPECT_TRUE(examples.ok()) << examples.status();
      if (made % micro_batch_size == 0) {
        batch.micro_batches.emplace_back();
      }
      batch.micro_batches.back().push_back((*examples)[0]);
      ++made;
    }
    return batch;
  }

  TrainStep MakeTrainStep(TaskModel* model, double clip_norm = 0,
                          int64_t seed = 5) const {
    auto optimizer = std::make_unique<Optimizer>(config_.optimizer,
                                                 model->NamedParameters());
    return TrainStep(model, std::move(optimizer),
                     {.clip_norm = clip_norm,
                      .schedule = {.learning_rate = 0.01, .num_steps = 10},
                      .seed = seed});
  }

  RunConfig config_;
};

// Copies of the gradients, without those that are undefined.
NamedTensors Gradients(const TaskModel& model) {
  NamedTensors gradients;
  for (const auto& [name, parameter] : model.NamedParameters()) {
    if (parameter.grad().defined()) {
      gradients[name] = parameter.grad().clone();
    }
  }
  return gradients;
}

NamedTensors Copies(const NamedTensors& tensors) {
  NamedTensors copies;
  for (const auto& [name, tensor] : tensors) {
    copies[name] = tensor.detach().clone();
  }
  return copies;
}

bool AllEqual(const NamedTensors& left, const NamedTensors& right) {
  for (const auto& [name, tensor] : left) {
    if (!torch::equal(tensor, right.at(name))) {
      return false;
    }
  }
  return left.size() == right.size();
}

TEST_F(TrainStepTest, AddsUpMicroBatchesToTheGradientOfTheBatch) {
  TaskModel whole = MakeModel();
  TrainStep train_step = MakeTrainStep(&whole);
  const auto expected = train_step.Run(MakeTrainingBatch(8, 8), 0, nullptr);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const NamedTensors gradients = Gradients(whole);
  ASSERT_GT(gradients.size(), 20);
  for (const int64_t micro_batch_size : {1, 3, 4}) {
    TaskModel parts = MakeModel();
    TrainStep other = MakeTrainStep(&parts);
    const auto update =
        other.Run(MakeTrainingBatch(8, micro_batch_size), 0, nullptr);
    ASSERT_TRUE(update.ok());
    EXPECT_NEAR((*update)->loss, (*expected)->loss, 1e-6);
    EXPECT_EQ((*update)->tokens, (*expected)->tokens);
    for (const auto& [name, gradient] : Gradients(parts)) {
      EXPECT_TRUE(torch::allclose(gradient, gradients.at(name), /*rtol=*/1e-4,
                                  /*atol=*/1e-6))
          << name << ", micro-batches of " << micro_batch_size;
    }
  }
}

TEST_F(TrainStepTest, DividesByTheOfficialBatchSize) {
  TaskModel model = MakeModel();
  const TrainingBatch batch = MakeTrainingBatch(8, 8);
  const Batch tensors = MakeBatch(batch.micro_batches[0]);
  const double sum = std::static_pointer_cast<OutputHead>(model.head())
                         ->Losses(model.Forward(tensors), tensors)
                         .sum()
                         .item<double>();
  const auto update = MakeTrainStep(&model).Run(batch, 0, nullptr);
  ASSERT_TRUE(update.ok());
  EXPECT_NEAR((*update)->loss, sum / 8.00001, 1e-6);
}

// Starting from equal weights, the running mean after one update is 0.1 g.
TEST_F(TrainStepTest, ReportsTheNormBeforeClippingAndClips) {
  TaskModel model = MakeModel();
  TrainStep train_step = MakeTrainStep(&model, /*clip_norm=*/0.01);
  const auto update = train_step.Run(MakeTrainingBatch(8, 2), 0, nullptr);
  ASSERT_TRUE(update.ok());
  EXPECT_GT((*update)->gradient_norm, 0.05);
  EXPECT_NEAR(GradientNorm(model.NamedParameters()), (*update)->gradient_norm,
              1e-7);
  double squares = 0;
  for (const auto& [name, tensor] : train_step.optimizer().State()) {
    if (name.starts_with("m.")) {
      squares += tensor.square().sum().item<double>();
    }
  }
  EXPECT_NEAR(std::sqrt(squares), 0.1 * 0.01, 1e-8);
}

TEST_F(TrainStepTest, FollowsTheSchedule) {
  TaskModel model = MakeModel();
  TrainStep train_step = MakeTrainStep(&model);
  const auto update = train_step.Run(MakeTrainingBatch(8, 2), 5, nullptr);
  ASSERT_TRUE(update.ok());
  EXPECT_DOUBLE_EQ((*update)->learning_rate, 0.005);
  const NamedTensors before = Copies(model.NamedParameters());
  ASSERT_TRUE(train_step.Run(MakeTrainingBatch(8, 2), 10, nullptr).ok());
  EXPECT_TRUE(AllEqual(model.NamedParameters(), before)) << "the rate is 0";
}

TEST_F(TrainStepTest, DrawsDropoutFromSeedAndStepAlone) {
  SetDropout(0.3);
  const auto loss = [this](int64_t step, int64_t draws_before,
                           int64_t seed = 5) {
    TaskModel model = MakeModel();
    torch::rand({draws_before + 1});
    return (*MakeTrainStep(&model, /*clip_norm=*/0, seed)
                 .Run(MakeTrainingBatch(8, 2), step, nullptr))
        ->loss;
  };
  EXPECT_EQ(loss(1, 0), loss(1, 17));
  EXPECT_NE(loss(1, 0), loss(2, 0));
  EXPECT_NE(loss(1, 0), loss(1, 0, /*seed=*/6));
}

TEST_F(TrainStepTest, DrawsOtherDropoutForEachMicroBatch) {
  SetDropout(0.3);
  const auto loss = [this](const TrainingBatch& batch) {
    TaskModel model = MakeModel();
    return (*MakeTrainStep(&model).Run(batch, 1, nullptr))->loss;
  };
  const TrainingBatch one = MakeTrainingBatch(1, 1);
  TrainingBatch copies;
  copies.micro_batches.assign(4, one.micro_batches[0]);
  // With the same masks the mean of the copies would be the loss of one.
  EXPECT_GT(std::abs(loss(copies) - loss(one)), 1e-4);
}

TEST_F(TrainStepTest, LeavesTheModelAloneWhenStopped) {
  TaskModel model = MakeModel();
  const NamedTensors before = Copies(model.NamedParameters());
  const std::atomic<bool> stop = true;
  const auto update =
      MakeTrainStep(&model).Run(MakeTrainingBatch(8, 2), 0, &stop);
  ASSERT_TRUE(update.ok());
  EXPECT_FALSE(update->has_value());
  EXPECT_TRUE(AllEqual(model.NamedParameters(), before));
}

TEST_F(TrainStepTest, MeasuresTheUpdateAndTheWeights) {
  for (const std::string type : {"bert_adamw", "adamw", "lamb"}) {
    config_.optimizer.type = type;
    TaskModel model = MakeModel();
    TrainStep train_step = MakeTrainStep(&model);
    const NamedTensors before = Copies(model.NamedParameters());
    const auto update = train_step.Run(MakeTrainingBatch(8, 2), 4, nullptr);
    ASSERT_TRUE(update.ok());
    double change = 0;
    double weights = 0;
    for (const auto& [name, parameter] : model.NamedParameters()) {
      change += (parameter - before.at(name)).square().sum().item<double>();
      weights += parameter.square().sum().item<double>();
    }
    EXPECT_GT(change, 0);
    EXPECT_NEAR((*update)->update_norm, std::sqrt(change),
                1e-4 * std::sqrt(change))
        << type;
    EXPECT_NEAR((*update)->weight_norm, std::sqrt(weights),
                1e-5 * std::sqrt(weights))
        << type;
    EXPECT_EQ((*update)->warning, "");
  }
}

TEST_F(TrainStepTest, WarnsBeyondTheStatedBounds) {
  const TrainStepResult sound = {.update_norm = 4.9, .weight_norm = 19};
  EXPECT_EQ(NormWarning(sound, 6, /*norm_before=*/5, /*count=*/4), "");
  const TrainStepResult long_update = {
      .learning_rate = 1e6, .update_norm = 5.1, .weight_norm = 9};
  EXPECT_THAT(NormWarning(long_update, 6, 5, 4),
              HasSubstr("update 7 is 5.1 long, longer than all weights before "
                        "it (5); a learning rate of 1e+06"));
  const TrainStepResult large_weights = {.update_norm = 1, .weight_norm = 21};
  EXPECT_THAT(NormWarning(large_weights, 6, 20, 4),
              HasSubstr("after update 7 the root mean square of the weights is "
                        "10.5; above 10"));
}

TEST_F(TrainStepTest, FindsWeightsThatAreNotFiniteAfterAnUpdate) {
  TaskModel model = MakeModel();
  auto optimizer =
      std::make_unique<Optimizer>(config_.optimizer, model.NamedParameters());
  TrainStep train_step(
      &model, std::move(optimizer),
      {.schedule = {.learning_rate = 1e300, .num_steps = 10}, .seed = 5});
  const absl::Status status =
      train_step.Run(MakeTrainingBatch(8, 2), 3, nullptr).status();
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("the weights' norm after update 4"));
}

TEST_F(TrainStepTest, ChecksTheLossOfTheWeightsAndLeavesTheModelAlone) {
  TaskModel model = MakeModel();
  const Examples examples = MakeTrainingBatch(3, 3).micro_batches[0];
  const NamedTensors before = Copies(model.NamedParameters());
  model.SetTraining(true);
  EXPECT_TRUE(MakeTrainStep(&model).CheckLoss(examples, 4).ok());
  EXPECT_TRUE(model.is_training());
  EXPECT_TRUE(AllEqual(model.NamedParameters(), before));
  {
    const torch::NoGradGuard no_grad;
    model.NamedParameters()
        .at("head.output.bias")
        .fill_(std::numeric_limits<float>::infinity());
  }
  const absl::Status status = MakeTrainStep(&model).CheckLoss(examples, 4);
  EXPECT_TRUE(absl::IsAborted(status));
  EXPECT_THAT(status.message(),
              HasSubstr("with the weights after 4 updates the loss is nan"));
}

TEST_F(TrainStepTest, LeavesTheModelAloneWhenTheLossIsNotFinite) {
  TaskModel model = MakeModel(/*nan_record=*/"5");
  const NamedTensors before = Copies(model.NamedParameters());
  TrainStep train_step = MakeTrainStep(&model);
  const absl::Status status =
      train_step.Run(MakeTrainingBatch(8, 2), 3, nullptr).status();
  EXPECT_TRUE(absl::IsAborted(status));
  EXPECT_THAT(status.message(), HasSubstr("the loss of update 4 is nan"));
  EXPECT_TRUE(AllEqual(model.NamedParameters(), before));
  EXPECT_TRUE(train_step.optimizer().State().empty());
}

// --- Mistakes in a head ------------------------------------------------------

class ForgetfulHead : public ToyHead {
 public:
  using ToyHead::ToyHead;

  std::vector<torch::Tensor> forward(const EtcOutput& encoded,
                                     const Batch& batch) override {
    return {ToyHead::forward(encoded, batch)[0] +
            forgotten_->forward(encoded.global_output.select(1, 0))};
  }

 private:
  torch::nn::Linear forgotten_{16, 2};  // not registered
};

class DetachedLogitsHead : public ToyHead {
 public:
  using ToyHead::ToyHead;

  std::vector<torch::Tensor> forward(const EtcOutput& encoded,
                                     const Batch& batch) override {
    return {ToyHead::forward(encoded, batch)[0].detach()};
  }
};

class DetachedLossesHead : public ToyHead {
 public:
  using ToyHead::ToyHead;

  torch::Tensor Losses(const std::vector<torch::Tensor>& logits,
                       const Batch& batch) override {
    return ToyHead::Losses({logits[0].detach()}, batch);
  }
};

TEST_F(TrainStepTest, RefusesAHeadThatWouldNotBeTrained) {
  const auto update = [this](std::shared_ptr<TaskHead> head) {
    return [this, head = std::move(head)] {
      TaskModel model(EtcModel(config_.model), head);
      static_cast<void>(
          MakeTrainStep(&model).Run(MakeTrainingBatch(2, 2), 0, nullptr));
    };
  };
  const int64_t size = config_.model.hidden_size;
  ASSERT_EQ(size, 16);
  EXPECT_NO_THROW(update(std::make_shared<ToyHead>(size))());
  EXPECT_THAT(update(std::make_shared<ForgetfulHead>(size)),
              ThrowsMessage<c10::Error>(AllOf(
                  HasSubstr("the head uses a tensor [2"),
                  HasSubstr("is no parameter"), HasSubstr("register_module"))));
  EXPECT_THAT(update(std::make_shared<DetachedLogitsHead>(size)),
              ThrowsMessage<c10::Error>(
                  HasSubstr("logits should have a gradient, but have none")));
  EXPECT_THAT(update(std::make_shared<DetachedLossesHead>(size)),
              ThrowsMessage<c10::Error>(
                  HasSubstr("losses should have a gradient, as its logits")));
}

}  // namespace
}  // namespace etc
