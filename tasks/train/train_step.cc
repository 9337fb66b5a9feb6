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
#include "base/out_of_memory.h"
#include "base/parallel_tasks.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/stop_guard.h"
#include "base/tensor_file.h"
#include "etc/weights/encoder_parameters.h"
#include "tasks/data/batch.h"
#include "tasks/train/device.h"

namespace etc {
namespace {

absl::Status Diverged(const std::string& what, int64_t step, double value) {
  return absl::AbortedError(
      absl::StrCat("the ", what, " update ", step + 1, " is ", value));
}

std::optional<GateNumbers> NumbersOf(const std::vector<torch::Tensor>& gates) {
  if (gates.empty()) {
    return std::nullopt;
  }
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> flat;
  for (const torch::Tensor& gate : gates) {
    flat.push_back(gate.reshape({-1}));
  }
  const torch::Tensor all = torch::cat(flat).cpu().to(torch::kFloat64);
  GateNumbers numbers;
  const auto values = all.accessor<double, 1>();
  for (int64_t i = 0; i < values.size(0); ++i) {
    numbers.values.push_back(values[i]);
  }
  numbers.mean = all.mean().item<double>();
  numbers.largest = all.abs().max().item<double>();
  return numbers;
}

}  // namespace

std::string NormWarning(const TrainStepResult& update, int64_t step,
                        double norm_before, int64_t count) {
  if (norm_before > 0 &&
      update.update_norm > kMaxRelativeUpdate * norm_before) {
    return absl::StrFormat(
        "update %d is %.3g long, longer than all weights before it "
        "(%.3g); a learning rate of %.3g is likely too high",
        step + 1, update.update_norm, norm_before, update.learning_rate);
  }
  const double root_mean_square =
      update.weight_norm / std::sqrt(static_cast<double>(count));
  if (root_mean_square > kMaxRootMeanSquare) {
    return absl::StrFormat(
        "after update %d the root mean square of the weights is %.3g; "
        "above %.3g a model is likely ruined",
        step + 1, root_mean_square, kMaxRootMeanSquare);
  }
  return "";
}

ModelWarning ScoreWarning(const SeenScores& scores) {
  const bool is_too_large = scores.watched > kMaxWatchedScore;
  const bool is_inexact = scores.reverses && scores.largest > kMaxReversedScore;
  if (!is_too_large && !is_inexact) {
    return {};
  }
  ModelWarning warning = {
      .severity = is_too_large ? 2 : 1,
      .text = absl::StrFormat("attention scores reach %.3g", scores.largest)};
  if (is_too_large) {
    absl::StrAppend(
        &warning.text,
        ": float32 rounds scores above 10,000 to about 0.001; \"scores\" in "
        "metrics.jsonl has them by layer, a lower learning rate may keep them "
        "smaller");
  }
  if (is_inexact) {
    absl::StrAppendFormat(
        &warning.text,
        "%s with train.score_storage \"reverse\" gradients are off by about "
        "%.0e of their size; \"recompute\" is exact and takes more time, "
        "\"store\" is exact and takes more memory",
        is_too_large ? ";" : ":", 1e-7 * scores.largest);
  }
  return warning;
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
    if (IsGate(name)) {
      gates_.push_back(parameter);
    }
  }
  if (options_.group != nullptr) {
    sums_ = std::make_unique<GradientSums>(TrainedParameters(parameters_),
                                           options_.group);
  }
}

// Seeds the generators of all devices.
void TrainStep::SeedFor(SeedUse use, int64_t step, size_t micro_batch) const {
  const auto seed = static_cast<uint64_t>(options_.seed);
  const auto update = static_cast<uint64_t>(step);
  torch::manual_seed(use == SeedUse::kForward
                         ? CombineSeeds({seed, update, micro_batch})
                         : CombineSeeds({seed, update, micro_batch, 1}));
}

bool TrainStep::WatchesScores(int64_t step) const {
  return options_.watch_scores > 0 && (step + 1) % options_.watch_scores == 0 &&
         (options_.group == nullptr || options_.group->is_first());
}

// Never waits for a CUDA device, which may still compute the previous
// micro-batch when this one is made and sent.
torch::Tensor TrainStep::AddGradient(const Examples& examples,
                                     const LossTotals& totals) {
  const Batch batch = model_->Collate(examples, device_);
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

absl::StatusOr<bool> TrainStep::RunAndAgree(
    const RankShare& share, const Pass& pass,
    const MicroBatchFunction& function) {
  bool stopped = false;
  const auto run = [&]() -> absl::Status {
    try {
      ForEachOwnMicroBatch(share, pass, function);
    } catch (const Stopped&) {
      stopped = true;
    } catch (const TensorFileError& error) {  // of train.memory_directory
      return error.status();
    }
    return absl::OkStatus();
  };
  ProcessGroup* const group = options_.group;
  if (group == nullptr) {
    ETC_RETURN_IF_ERROR(run());
    return !stopped;
  }
  const auto name = [&] {
    return absl::StrCat("making update ", share.step + 1);
  };
  // Shares the error before the other ranks wait for this one in vain.
  const absl::Status done = NamingOutOfMemory(name, run);
  if (!pass.makes_gradients) {
    return group->AgreeToGoOn(done, !stopped);
  }
  ETC_RETURN_IF_ERROR(NamingOutOfMemory(name, [&] {
    sums_->SendRest();
    return absl::OkStatus();
  }));
  ETC_ASSIGN_OR_RETURN(const bool go_on, group->AgreeToGoOn(done, !stopped));
  if (!go_on) {
    ETC_RETURN_IF_ERROR(sums_->Drop());
  }
  return go_on;
}

void TrainStep::ForEachOwnMicroBatch(const RankShare& share, const Pass& pass,
                                     const MicroBatchFunction& function) const {
  for (size_t i = 0; i < share.is_here.size(); ++i) {
    if (share.is_here[i]) {
      if (sums_ != nullptr && pass.makes_gradients && i == share.last_here()) {
        sums_->BeginLastPass();
      }
      // Needed for models that do not look at the guard between their layers.
      ThrowIfStopped();
      SeedFor(pass.use, share.step, i);
      function(i, share.batch.micro_batches[i]);
    }
  }
}

absl::StatusOr<bool> TrainStep::AddToContext(const RankShare& share,
                                             UpdateContext* context) {
  if (context == nullptr) {
    return true;
  }
  size_t next = 0;
  const auto skip_to = [&](size_t end) {
    for (; next < end; ++next) {
      context->Skip();
    }
  };
  ETC_ASSIGN_OR_RETURN(const bool made,
                       RunAndAgree(share, {.use = SeedUse::kShared},
                                   [&](size_t i, const Examples& examples) {
                                     skip_to(i);
                                     context->Add(examples, device_);
                                     ++next;
                                   }));
  if (made) {
    skip_to(share.is_here.size());
    ETC_RETURN_IF_ERROR(context->Exchange(options_.group));
  }
  return made;
}

absl::StatusOr<bool> TrainStep::AddGradientOfContext(const RankShare& share,
                                                     UpdateContext* context) {
  if (context == nullptr) {
    return true;
  }
  ETC_RETURN_IF_ERROR(context->SumGradients(options_.group));
  return RunAndAgree(
      share, {.use = SeedUse::kShared, .makes_gradients = true},
      [&](size_t i, const Examples&) { context->AddGradient(i); });
}

absl::StatusOr<LossTotals> TrainStep::TotalsOf(const TrainingBatch& batch,
                                               TrainStepResult* result) const {
  LossTotals totals;
  double examples_here = 0;
  double tokens = 0;
  for (const Examples& examples : batch.micro_batches) {
    AddTotals(model_->Totals(examples), &totals);
    examples_here += static_cast<double>(examples.size());
    for (const auto& example : examples) {
      tokens += static_cast<double>(example->num_tokens());
    }
  }
  totals.push_back(examples_here);
  totals.push_back(tokens);
  if (options_.group != nullptr) {
    // Whole numbers: the same however they are added up.
    const torch::Tensor sums = torch::tensor(totals, torch::kFloat64);
    ETC_RETURN_IF_ERROR(options_.group->Sum({sums}));
    totals.assign(sums.data_ptr<double>(),
                  sums.data_ptr<double>() + sums.numel());
  }
  result->tokens = static_cast<int64_t>(totals.back());
  totals.pop_back();
  result->examples = static_cast<int64_t>(totals.back());
  totals.pop_back();
  return totals;
}

absl::StatusOr<bool> TrainStep::ComputeGradient(const TrainingBatch& batch,
                                                int64_t step,
                                                TrainStepResult* result) {
  for (const auto& [name, parameter] : parameters_) {
    // Undefined, not zero: a parameter without a gradient is left alone.
    torch::Tensor(parameter).mutable_grad() = torch::Tensor();
  }
  ETC_ASSIGN_OR_RETURN(const LossTotals totals, TotalsOf(batch, result));
  const std::unique_ptr<UpdateContext> context = model_->BeginUpdate();
  RankShare share = {.batch = batch, .step = step};
  for (const Examples& examples : batch.micro_batches) {
    share.is_here.push_back(!examples.empty());
  }
  ETC_ASSIGN_OR_RETURN(const bool begun, AddToContext(share, context.get()));
  if (!begun) {
    return false;
  }
  torch::Tensor loss;
  ETC_ASSIGN_OR_RETURN(
      const bool made,
      RunAndAgree(
          share,
          {.use = SeedUse::kForward, .makes_gradients = context == nullptr},
          [&](size_t, const Examples& examples) {
            if (!loss.defined() && WatchesScores(step)) {
              model_->WatchNextForward();
            }
            const torch::Tensor part = AddGradient(examples, totals);
            loss = loss.defined() ? loss + part : part;
          }));
  if (!made) {
    return false;
  }
  ETC_ASSIGN_OR_RETURN(const bool added,
                       AddGradientOfContext(share, context.get()));
  if (!added) {
    return false;
  }
  result->loss = loss.defined() ? loss.item<double>() : 0;
  if (WatchesScores(step)) {
    result->score_statistics = model_->TakeScoreStatistics();
  }
  if (sums_ != nullptr) {
    ETC_RETURN_IF_ERROR(sums_->Finish(&result->loss));
  }
  return true;
}

absl::Status TrainStep::CheckGradient(int64_t step,
                                      TrainStepResult* result) const {
  if (!std::isfinite(result->loss)) {
    return Diverged("loss of", step, result->loss);
  }
  result->gradient_norm = GradientNorm(parameters_);
  if (!std::isfinite(result->gradient_norm)) {
    return Diverged("gradient's norm of", step, result->gradient_norm);
  }
  return absl::OkStatus();
}

absl::Status TrainStep::ApplyGradient(int64_t step, TrainStepResult* result) {
  ETC_RETURN_IF_ERROR(CheckGradient(step, result));
  result->learning_rate = options_.schedule.At(step);
  if (!weight_norm_.has_value()) {
    weight_norm_ = ParameterNorm(parameters_);
  }
  const double norm_before = *weight_norm_;
  is_between_updates_ = false;
  result->update_norm =
      optimizer_->Step(result->learning_rate,
                       ClipFactor(result->gradient_norm, options_.clip_norm));
  if (options_.shards != nullptr) {
    ETC_RETURN_IF_ERROR(options_.shards->ShareUpdate(&result->update_norm));
  }
  result->weight_norm = ParameterNorm(parameters_);
  weight_norm_ = result->weight_norm;
  if (!std::isfinite(result->weight_norm)) {
    return Diverged("weights' norm after", step, result->weight_norm);
  }
  result->gates = NumbersOf(gates_);
  result->warning = NormWarning(*result, step, norm_before, num_parameters_);
  result->model_warning = model_->Warning();
  // Not before: those need memory, and without it the update is not counted.
  is_between_updates_ = true;
  return absl::OkStatus();
}

absl::StatusOr<std::optional<TrainStepResult>> TrainStep::Run(
    const TrainingBatch& batch, int64_t step, const std::atomic<bool>* stop) {
  model_->SetTraining(true);
  const StopGuard guard(stop);
  TrainStepResult result;
  ETC_ASSIGN_OR_RETURN(const bool made, ComputeGradient(batch, step, &result));
  if (!made) {
    return std::nullopt;
  }
  ETC_RETURN_IF_ERROR(ApplyGradient(step, &result));
  return result;
}

absl::StatusOr<std::optional<TrainStepResult>> TrainStep::Try(
    const TrainingBatch& batch, const std::atomic<bool>* stop) {
  model_->SetTraining(true);
  const StopGuard guard(stop);
  TrainStepResult result;
  ETC_ASSIGN_OR_RETURN(const bool made,
                       ComputeGradient(batch, /*step=*/0, &result));
  if (!made) {
    return std::nullopt;
  }
  ETC_RETURN_IF_ERROR(CheckGradient(/*step=*/0, &result));
  return result;
}

absl::Status TrainStep::CheckLoss(const Examples& examples, int64_t step) {
  const torch::NoGradGuard no_grad;
  const EvaluationMode mode(model_);
  const Batch batch = model_->Collate(examples, device_);
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
