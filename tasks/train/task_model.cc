#include "tasks/train/task_model.h"

#include <torch/utils.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "etc/admin_profile.h"
#include "etc/config.h"
#include "tasks/task/task.h"
#include "tasks/train/device.h"
#include "tasks/train/memory_plan.h"
#include "tasks/train/train_step.h"
#include "tasks/train/trained_counts.h"

namespace etc {

bool TaskModel::Reverses() const {
  return encoder_->score_storage() == ScoreStorage::kReverse &&
         encoder_->residual_attention() != ResidualAttention::kOff;
}

std::vector<torch::Tensor> TaskModel::Forward(const Batch& batch) {
  // Scores grow slowly: one pass of these is enough, and costs nothing.
  constexpr int64_t kPassesPerMeasurement = 50;
  encoder_->set_measures_scores(Reverses() && is_training() &&
                                training_passes_++ % kPassesPerMeasurement ==
                                    0);
  encoder_->set_statistics_rows(
      std::exchange(watches_next_, false) ? kWatchedRows : 0);
  if (planner_ != nullptr && is_training()) {
    const EtcInput& input = batch.input;
    StepShape shape = {.batch = input.global_token_ids.size(0),
                       .long_length = input.token_ids.size(1),
                       .global_length = input.global_token_ids.size(1)};
    shape.outputs = head_->CostOf(shape).outputs;
    planner_->Apply(planner_->For(shape), &encoder_);
  }
  std::vector<torch::Tensor> logits = head_->Run(encoder_, batch);
  encoder_->set_statistics_rows(0);  // for runs of its own that a head makes
  return logits;
}

std::vector<LayerStatistics> TaskModel::TakeScoreStatistics() {
  std::vector<LayerStatistics> layers = encoder_->TakeStatistics();
  for (const LayerStatistics& layer : layers) {
    largest_watched_ = std::max(largest_watched_, layer.largest_score());
  }
  return layers;
}

ModelWarning TaskModel::Warning() const {
  return ScoreWarning(
      {.largest = std::max(encoder_->largest_score(), largest_watched_),
       .watched = largest_watched_,
       .reverses = Reverses()});
}

NamedTensors TaskModel::Tensors() const {
  NamedTensors tensors = ModuleTensors(*encoder_, kEncoderPrefix);
  tensors.merge(ModuleTensors(*head_, kHeadPrefix));
  return tensors;
}

NamedTensors TaskModel::NamedParameters() const {
  NamedTensors parameters;
  for (const auto& parameter : encoder_->named_parameters()) {
    parameters.emplace(kEncoderPrefix + parameter.key(), parameter.value());
  }
  for (const auto& parameter : head_->named_parameters()) {
    parameters.emplace(kHeadPrefix + parameter.key(), parameter.value());
  }
  return parameters;
}

void TaskModel::SetTraining(bool training) {
  encoder_->train(training);
  head_->train(training);
}

void TaskModel::MoveTo(const torch::Device& device) {
  encoder_->to(device);
  head_->to(device);
}

std::string InitializeOmegas(TaskModel model, const Batch& batch) {
  if (!HasUnitOmegas(model.encoder())) {
    return "";
  }
  const torch::NoGradGuard no_grad;
  model.SetTraining(true);
  model.encoder()->ProfileNextPass();
  model.head()->Run(model.encoder(), batch);
  double largest = 1;
  for (const auto& parameter : model.encoder()->named_parameters()) {
    if (absl::EndsWith(parameter.key(), "omega")) {
      largest = std::max(largest, parameter.value().max().item<double>());
    }
  }
  return absl::StrFormat(
      "sublayer admin: omegas are set by the first micro-batch, up to %.4g",
      largest);
}

TaskModel MakeTaskModel(const RunConfig& config, const EncoderTask& task,
                        const torch::Device& device, int64_t processes) {
  EtcConfig model_config = config.model;
  model_config.residual_attention = config.residual_attention;
  EtcModel encoder(model_config);
  encoder->set_score_storage(ScoreStorageFromName(config.train.score_storage));
  encoder->set_linear_precision(PrecisionOn(device, config));
  TaskModel model(std::move(encoder), task.MakeHead());
  if (!device.is_cpu()) {
    model.MoveTo(device);
  }
  model.set_memory_planner(std::make_shared<MemoryPlanner>(
      config,
      CountTrained(config.train, SizesOf(model.NamedParameters()), processes),
      device.is_cpu() ? StepBackend::kCpu : StepBackend::kCudaKernels));
  return model;
}

}  // namespace etc
