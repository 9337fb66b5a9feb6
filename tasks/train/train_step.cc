#include "tasks/train/train_step.h"

#include <c10/util/Exception.h>
#include <torch/autograd.h>
#include <torch/utils.h>

#include <cmath>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/parallel_tasks.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/stop_guard.h"
#include "tasks/data/batch.h"
#include "tasks/train/device.h"

namespace etc {
namespace {

absl::Status Diverged(const std::string& what, int64_t step, double value) {
  return absl::AbortedError(
      absl::StrCat("the ", what, " update ", step + 1, " is ", value));
}

}  // namespace

std::string NormWarning(const TrainStepResult& update, int64_t step,
                        double norm_before, int64_t count) {
  if (norm_before > 0 &&
      update.update_norm > kMaxRelativeUpdate * norm_before) {
    return absl::StrFormat(
        "warning: update %d is %.3g long, longer than all weights before it "
        "(%.3g); a learning rate of %.3g is likely too high",
        step + 1, update.update_norm, norm_before, update.learning_rate);
  }
  const double root_mean_square =
      update.weight_norm / std::sqrt(static_cast<double>(count));
  if (root_mean_square > kMaxRootMeanSquare) {
    return absl::StrFormat(
        "warning: after update %d the root mean square of the weights is %.3g; "
        "above %.3g a model is likely ruined",
        step + 1, root_mean_square, kMaxRootMeanSquare);
  }
  return "";
}

TrainStep::TrainStep(TrainableModel* model,
                     std::unique_ptr<Optimizer> optimizer, Options options)
    : model_(model),
      parameters_(model->NamedParameters()),
      device_(DeviceOf(parameters_)),
      optimizer_(std::move(optimizer)),
      options_(options) {
  for (const auto& [name, parameter] : parameters_) {
    num_parameters_ += parameter.numel();
  }
}

// Of all devices.
void TrainStep::SeedFor(SeedUse use, int64_t step, size_t micro_batch) const {
  const auto seed = static_cast<uint64_t>(options_.seed);
  const auto update = static_cast<uint64_t>(step);
  torch::manual_seed(use == SeedUse::kForward
                         ? CombineSeeds({seed, update, micro_batch})
                         : CombineSeeds({seed, update, micro_batch, 1}));
}

// Nothing in here waits for a CUDA device, which may still be at the
// micro-batch before when this one is made and sent.
torch::Tensor TrainStep::AddGradient(const Examples& examples,
                                     const LossTotals& totals) {
  const Batch batch = MakeBatch(examples, device_);
  const std::vector<torch::Tensor> logits = model_->Forward(batch);
  LossOfLogits loss;
  OnOneThread([&] { loss = BackwardToLogits(logits, batch, totals); });
  if (!loss.logits.empty()) {
    torch::autograd::backward(loss.logits, loss.gradients);
  }
  return loss.loss;
}

// Apart from the rest, so that it can run on one thread: LibTorch adds up large
// rows of logits in as many parts as there are threads, and the loss must not
// depend on their number. Logits are small enough for that.
TrainStep::LossOfLogits TrainStep::BackwardToLogits(
    const std::vector<torch::Tensor>& logits, const Batch& batch,
    const LossTotals& totals) {
  std::vector<torch::Tensor> leaves;
  for (const torch::Tensor& tensor : logits) {
    leaves.push_back(tensor.detach().requires_grad_(tensor.requires_grad()));
  }
  const torch::Tensor loss = model_->Loss(leaves, batch, totals);
  if (loss.requires_grad()) {  // not if nothing is asked of these examples
    loss.backward();
  }
  LossOfLogits result = {.loss = loss.detach()};
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i].grad().defined()) {
      result.logits.push_back(logits[i]);
      result.gradients.push_back(leaves[i].grad());
    }
  }
  return result;
}

bool TrainStep::ComputeGradient(const TrainingBatch& batch, int64_t step,
                                TrainStepResult* result) {
  for (const auto& [name, parameter] : parameters_) {
    // Undefined, not zero: a parameter without a gradient is left alone.
    torch::Tensor(parameter).mutable_grad() = torch::Tensor();
  }
  LossTotals totals;
  for (const Examples& examples : batch.micro_batches) {
    AddTotals(model_->Totals(examples), &totals);
  }
  torch::Tensor loss;
  try {
    const std::unique_ptr<UpdateContext> shared = model_->BeginUpdate();
    if (shared != nullptr) {
      for (size_t i = 0; i < batch.micro_batches.size(); ++i) {
        SeedFor(SeedUse::kShared, step, i);
        shared->Add(batch.micro_batches[i], device_);
      }
    }
    for (size_t i = 0; i < batch.micro_batches.size(); ++i) {
      // Also for models that do not look at the guard between their layers.
      ThrowIfStopped();
      SeedFor(SeedUse::kForward, step, i);
      const torch::Tensor share = AddGradient(batch.micro_batches[i], totals);
      loss = loss.defined() ? loss + share : share;
    }
    if (shared != nullptr) {
      for (size_t i = 0; i < batch.micro_batches.size(); ++i) {
        SeedFor(SeedUse::kShared, step, i);
        shared->AddGradient(i);
      }
    }
  } catch (const Stopped&) {
    return false;
  }
  for (const Examples& examples : batch.micro_batches) {
    result->examples += static_cast<int64_t>(examples.size());
    for (const auto& example : examples) {
      result->tokens += example->long_length() + example->global_length();
    }
  }
  result->loss = loss.item<double>();
  return true;
}

absl::Status TrainStep::ApplyGradient(int64_t step, TrainStepResult* result) {
  if (!std::isfinite(result->loss)) {
    return Diverged("loss of", step, result->loss);
  }
  result->gradient_norm = GradientNorm(parameters_);
  if (!std::isfinite(result->gradient_norm)) {
    return Diverged("gradient's norm of", step, result->gradient_norm);
  }
  result->learning_rate = options_.schedule.At(step);
  if (!weight_norm_.has_value()) {
    weight_norm_ = ParameterNorm(parameters_);
  }
  const double norm_before = *weight_norm_;
  result->update_norm =
      optimizer_->Step(result->learning_rate,
                       ClipFactor(result->gradient_norm, options_.clip_norm));
  result->weight_norm = ParameterNorm(parameters_);
  weight_norm_ = result->weight_norm;
  if (!std::isfinite(result->weight_norm)) {
    return Diverged("weights' norm after", step, result->weight_norm);
  }
  result->warning = NormWarning(*result, step, norm_before, num_parameters_);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<TrainStepResult>> TrainStep::Run(
    const TrainingBatch& batch, int64_t step, const std::atomic<bool>* stop) {
  model_->SetTraining(true);
  const StopGuard guard(stop);
  TrainStepResult result;
  if (!ComputeGradient(batch, step, &result)) {
    return std::nullopt;
  }
  ETC_RETURN_IF_ERROR(ApplyGradient(step, &result));
  return result;
}

absl::Status TrainStep::CheckLoss(const Examples& examples, int64_t step) {
  const torch::NoGradGuard no_grad;
  const EvaluationMode mode(model_);
  const Batch batch = MakeBatch(examples, device_);
  const double loss =
      model_->Loss(model_->Forward(batch), batch, model_->Totals(examples))
          .item<double>();
  if (!std::isfinite(loss)) {
    return absl::AbortedError(absl::StrCat("with the weights after ", step,
                                           " updates the loss is ", loss));
  }
  return absl::OkStatus();
}

}  // namespace etc
