#include "tasks/train/evaluate.h"

#include <torch/utils.h>

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "base/stop_guard.h"
#include "tasks/data/batch.h"
#include "tasks/data/loader.h"
#include "tasks/train/device.h"
#include "tasks/train/run_plan.h"

namespace etc {
namespace {

// The number of an example of the batch with a logit that is infinite or not a
// number; nothing if there is none.
std::optional<int64_t> FindNotFinite(const std::vector<torch::Tensor>& logits,
                                     int64_t batch_size) {
  for (const torch::Tensor& tensor : logits) {  // [B, ...]
    const torch::Tensor finite =
        torch::isfinite(tensor).reshape({batch_size, -1}).all(1);
    if (!finite.all().item<bool>()) {
      return finite.logical_not().nonzero()[0][0].item<int64_t>();
    }
  }
  return std::nullopt;
}

absl::Status Cancelled() {
  return absl::CancelledError("the evaluation was stopped");
}

// The logits of a batch on the CPU.
//   kCancelled  the pass was stopped
//   kAborted    a logit is infinite or not a number; names the record
absl::StatusOr<std::vector<torch::Tensor>> FiniteLogits(TrainableModel* model,
                                                        const Batch& batch) {
  std::vector<torch::Tensor> logits;
  try {
    logits = model->Forward(batch);
  } catch (const Stopped&) {
    return Cancelled();
  }
  for (torch::Tensor& tensor : logits) {
    tensor = tensor.cpu();
  }
  const std::optional<int64_t> found = FindNotFinite(logits, batch.size());
  if (found.has_value()) {
    const auto bad = static_cast<size_t>(*found);
    return absl::AbortedError(
        absl::StrCat("record ", batch.examples[bad]->record_id,
                     ": the model's logits are infinite or not a number"));
  }
  return logits;
}

absl::StatusOr<Evaluation> EvaluateWithinMemory(
    TrainableModel* model, const Task& task, const ExampleSource& records,
    const EvaluateOptions& options) {
  const torch::NoGradGuard no_grad;
  const EvaluationMode mode(model);
  const torch::Device device = DeviceOf(model->NamedParameters());
  const double begin = SteadySeconds();
  Evaluation evaluation;
  evaluation.predictions = task.MakePredictions();
  EvaluationLoader loader(&records,
                          {.batch_size = options.batch_size,
                           .workers = options.workers,
                           .on_bad_record = options.on_bad_record,
                           .max_prefetch_bytes = options.max_prefetch_bytes,
                           .stop = options.stop});
  const StopGuard guard(options.stop);
  while (true) {
    if (options.stop != nullptr && options.stop->load()) {
      return Cancelled();
    }
    ETC_ASSIGN_OR_RETURN(Examples examples, loader.Next());
    if (examples.empty()) {
      break;
    }
    const Batch batch = MakeBatch(std::move(examples), device);
    ETC_ASSIGN_OR_RETURN(const std::vector<torch::Tensor> logits,
                         FiniteLogits(model, batch));
    evaluation.predictions->Add(batch, logits);
    evaluation.num_examples += batch.size();
    if (options.reporter != nullptr) {
      options.reporter->Evaluating(
          {.examples = evaluation.num_examples, .num_records = records.size()});
    }
  }
  evaluation.metrics = evaluation.predictions->Score();
  evaluation.skipped = loader.skipped();
  evaluation.seconds = SteadySeconds() - begin;
  return evaluation;
}

}  // namespace

std::function<absl::Status(uint64_t, uint64_t)> OpeningListener(
    const OpenOptions& options) {
  return [&options](uint64_t bytes, uint64_t num_bytes) -> absl::Status {
    if (options.stop != nullptr && options.stop->load()) {
      return absl::CancelledError("the reading of the data was stopped");
    }
    if (options.reporter != nullptr) {
      options.reporter->Opening({.bytes = bytes, .num_bytes = num_bytes});
    }
    return absl::OkStatus();
  };
}

absl::StatusOr<std::unique_ptr<ExampleSource>> OpenRecords(
    const std::vector<std::string>& patterns, const Task& task,
    const OpenOptions& options) {
  return task.Open({.patterns = patterns,
                    .use = options.use,
                    .listener = OpeningListener(options),
                    .max_record_bytes = options.max_record_bytes});
}

EvaluateOptions EvaluateOptionsFromConfig(const FinetuneConfig& config) {
  return {.batch_size = config.train.evaluation_batch_size,
          .workers = config.data.workers,
          .on_bad_record = OnBadRecordOf(config.data),
          .max_prefetch_bytes = CacheBytesOf(config.data)};
}

absl::StatusOr<Evaluation> Evaluate(TrainableModel* model, const Task& task,
                                    const ExampleSource& records,
                                    const EvaluateOptions& options) {
  return NamingOutOfMemory(
      [&] {
        return absl::StrCat("evaluating ", options.batch_size,
                            " examples at a time");
      },
      [&] { return EvaluateWithinMemory(model, task, records, options); });
}

absl::StatusOr<Evaluator::Result> TaskEvaluator::Evaluate(
    TrainableModel* model) const {
  ETC_ASSIGN_OR_RETURN(const Evaluation evaluation,
                       etc::Evaluate(model, *task_, *records_, options_));
  std::string contents = evaluation.predictions->FileContents();
  return Result{.summary = evaluation,
                .predictions = contents.empty() ? std::nullopt
                                                : std::optional<std::string>(
                                                      std::move(contents))};
}

}  // namespace etc
