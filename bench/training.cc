#include "bench/training.h"

#include <c10/util/Exception.h>

#include <string>
#include <utility>

#include "tasks/train/device.h"
#include "tasks/train/estimate.h"
#include "tasks/train/optimizer.h"

namespace etc {

std::vector<torch::Tensor> MeanHead::forward(const EtcOutput& encoded,
                                             const Batch& /*batch*/) {
  return {encoded.long_output, encoded.global_output};
}

torch::Tensor MeanHead::Losses(const std::vector<torch::Tensor>& logits,
                               const Batch& /*batch*/) {
  torch::Tensor losses = logits[1].square().mean({1, 2});
  if (logits[0].size(1) > 0) {  // BERT has no long tokens
    losses = losses + logits[0].square().mean({1, 2});
  }
  return losses;
}

Training::Training(const RunConfig& config, std::shared_ptr<TaskHead> head,
                   TrainingBatch batch, const torch::Device& device)
    : model_(EtcModel(config.model), std::move(head)),
      batch_(std::move(batch)) {
  model_.encoder()->to(device);
  model_.encoder()->set_score_storage(StepOptionsOf(config).storage);
  model_.encoder()->set_linear_precision(PrecisionOn(device, config));
  for (const auto& [name, parameter] : model_.NamedParameters()) {
    parameters_ += parameter.numel();
  }
  train_step_ = std::make_unique<TrainStep>(
      &model_,
      std::make_unique<Optimizer>(config.optimizer, model_.NamedParameters()),
      TrainStep::Options{
          .schedule = {.learning_rate = 1e-6, .num_steps = 1000000}});
}

void Training::Update() {
  TORCH_CHECK(train_step_->Run(batch_, step_++, /*stop=*/nullptr).ok());
}

}  // namespace etc
