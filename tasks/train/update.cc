#include "tasks/train/update.h"

#include <c10/util/Exception.h>
#include <torch/autograd.h>
#include <torch/utils.h>

#include <cmath>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "attention/parallel_tasks.h"
#include "tasks/data/batch.h"
#include "tasks/data/shuffle.h"

namespace etc {
namespace {

// Keeps the official loss finite for a batch without real examples.
constexpr double kOfficialEpsilon = 1e-5;

absl::Status Diverged(const std::string& what, int64_t step, double value) {
  return absl::AbortedError(
      absl::StrCat("the ", what, " of update ", step + 1, " is ", value));
}

}  // namespace

Updater::Updater(FinetunedModel model, std::unique_ptr<Optimizer> optimizer,
                 Options options)
    : model_(std::move(model)),
      parameters_(model_.Parameters()),
      optimizer_(std::move(optimizer)),
      options_(options) {}

torch::Tensor Updater::AddGradient(const Examples& examples, int64_t step,
                                   int64_t micro_batch) {
  torch::manual_seed(CombineSeeds({static_cast<uint64_t>(options_.seed),
                                   static_cast<uint64_t>(step),
                                   static_cast<uint64_t>(micro_batch)}));
  const Batch batch = MakeBatch(examples);
  const std::vector<torch::Tensor> logits = model_.Logits(batch);
  LossOfLogits loss;
  OnOneThread([&] { loss = BackwardToLogits(logits, batch); });
  torch::autograd::backward(loss.logits, loss.gradients);
  return loss.loss;
}

// Logits are small, and LibTorch adds up large rows of them in as many parts as
// there are threads: hence apart from the rest, and on one.
Updater::LossOfLogits Updater::BackwardToLogits(
    const std::vector<torch::Tensor>& logits, const Batch& batch) {
  std::vector<torch::Tensor> leaves;
  for (const torch::Tensor& tensor : logits) {
    leaves.push_back(tensor.detach().requires_grad_(tensor.requires_grad()));
  }
  const torch::Tensor losses = model_.head->Losses(leaves, batch);  // [B]
  TORCH_CHECK(losses.dim() == 1 && losses.size(0) == batch.size(),
              "a head's losses should have shape [", batch.size(),
              "], but have ", losses.sizes());
  const torch::Tensor loss =
      losses.sum() /
      (static_cast<double>(options_.batch_size) + kOfficialEpsilon);
  loss.backward();
  LossOfLogits result = {.loss = loss.detach()};
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i].grad().defined()) {
      result.logits.push_back(logits[i]);
      result.gradients.push_back(leaves[i].grad());
    }
  }
  return result;
}

absl::StatusOr<std::optional<Update>> Updater::Make(
    const TrainingBatch& batch, int64_t step, const std::atomic<bool>* stop) {
  model_.SetTraining(true);
  for (const auto& [name, parameter] : parameters_) {
    // Undefined, not zero: a parameter without a gradient is left alone.
    torch::Tensor(parameter).mutable_grad() = torch::Tensor();
  }
  Update update;
  torch::Tensor loss;
  int64_t micro_batch = 0;
  for (const Examples& examples : batch.micro_batches) {
    if (stop != nullptr && stop->load()) {
      return std::nullopt;
    }
    const torch::Tensor share = AddGradient(examples, step, micro_batch);
    loss = loss.defined() ? loss + share : share;
    ++micro_batch;
    update.examples += static_cast<int64_t>(examples.size());
    for (const auto& example : examples) {
      update.tokens += example->long_length() + example->global_length();
    }
  }
  update.loss = loss.item<double>();
  if (!std::isfinite(update.loss)) {
    return Diverged("loss", step, update.loss);
  }
  update.gradient_norm = GradientNorm(parameters_);
  if (!std::isfinite(update.gradient_norm)) {
    return Diverged("gradient's norm", step, update.gradient_norm);
  }
  update.learning_rate = options_.schedule.At(step);
  optimizer_->Step(update.learning_rate,
                   ClipFactor(update.gradient_norm, options_.clip_norm));
  return update;
}

}  // namespace etc
