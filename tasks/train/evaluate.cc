#include "tasks/train/evaluate.h"

#include <torch/utils.h>

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/counted.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "base/stop_guard.h"
#include "base/utf8.h"
#include "tasks/data/batch.h"
#include "tasks/distributed/tensor_bytes.h"
#include "tasks/train/device.h"
#include "tasks/train/run_plan.h"
#include "tasks/train/shared_start.h"

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

// Describes the action in messages.
std::string WhatIsDone(const EvaluateOptions& options) {
  return absl::StrCat(options.loader.predicts ? "predicting " : "evaluating ",
                      Counted(options.loader.batch_size, "example"),
                      " at a time");
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

EvaluationLoader::Options LoaderOptionsWithContext(
    const EvaluateOptions& options) {
  EvaluationLoader::Options loader = options.loader;
  loader.stop = options.context.stop;
  loader.group = DataGroupOf(options.context.group);
  return loader;
}

// One batch for each rank, and this rank's logits.
struct ComputedBatches {
  // On rank 0 those of all ranks, in their order; else its own.
  std::vector<Batch> batches;
  size_t num_batches = 0;
  int64_t num_examples = 0;
  int64_t num_records = 0;
  std::vector<torch::Tensor> logits;
};

// An evaluation, from the first record to the scores: rank r runs batch r of
// each round, and rank 0 gathers the logits.
class EvaluationRun {
 public:
  EvaluationRun(TrainableModel* model, const Task& task,
                const ExampleSource& records, const EvaluateOptions& options)
      : model_(model),
        options_(options),
        device_(DeviceOf(model->NamedParameters())),
        num_records_(records.size()),
        loader_(&records, LoaderOptionsWithContext(options)) {
    evaluation_.predictions = task.MakePredictions();
  }

  // Runs all of it, once.
  absl::StatusOr<Evaluation> Run();

 private:
  int64_t rank() const { return options_.context.rank(); }
  // Adds the predictions of the next batches; false at the end.
  absl::StatusOr<bool> AddNext();
  // Makes this rank's batch and its logits.
  absl::Status Compute(ComputedBatches* computed);
  // The logits of all ranks' batches, in their order; on rank 0 alone.
  absl::StatusOr<std::vector<std::vector<torch::Tensor>>> GatherLogits(
      const ComputedBatches& computed);
  // Scores all predictions, with the same result on all ranks.
  absl::Status Score();

  const double begin_ = SteadySeconds();
  TrainableModel* const model_;
  const EvaluateOptions& options_;
  const torch::Device device_;
  const int64_t num_records_;
  int64_t records_done_ = 0;
  EvaluationLoader loader_;
  Evaluation evaluation_;
};

absl::StatusOr<Evaluation> EvaluationRun::Run() {
  const torch::NoGradGuard no_grad;
  const EvaluationMode mode(model_);
  const StopGuard guard(options_.context.stop);
  while (true) {
    ETC_ASSIGN_OR_RETURN(const bool added, AddNext());
    if (!added) {
      break;
    }
    if (options_.context.reporter != nullptr) {
      const auto left = static_cast<double>(num_records_ - records_done_);
      options_.context.reporter->Evaluating(
          {.records = records_done_,
           .num_records = num_records_,
           .seconds_left = (SteadySeconds() - begin_) * left /
                           static_cast<double>(records_done_),
           .predicts = options_.loader.predicts});
    }
  }
  ETC_RETURN_IF_ERROR(Score());
  evaluation_.seconds = SteadySeconds() - begin_;
  return std::move(evaluation_);
}

absl::Status EvaluationRun::Compute(ComputedBatches* computed) {
  // Collective operations come first.
  ETC_ASSIGN_OR_RETURN(EvaluationRound examples, loader_.Next());
  if (options_.context.is_stopped()) {
    return Cancelled();
  }
  computed->num_batches = examples.batches.size();
  computed->num_examples = examples.num_examples;
  computed->num_records = examples.num_records;
  for (size_t turn = 0; turn < examples.batches.size(); ++turn) {
    const bool is_own = static_cast<int64_t>(turn) == rank();
    if (!is_own && rank() != 0) {
      continue;
    }
    Batch batch = model_->Collate(std::move(examples.batches[turn]),
                                  is_own ? device_ : torch::kCPU);
    if (is_own) {
      ETC_ASSIGN_OR_RETURN(computed->logits, FiniteLogits(model_, batch));
    }
    computed->batches.push_back(std::move(batch));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::vector<torch::Tensor>>>
EvaluationRun::GatherLogits(const ComputedBatches& computed) {
  if (options_.context.group == nullptr) {
    return std::vector<std::vector<torch::Tensor>>{computed.logits};
  }
  ETC_ASSIGN_OR_RETURN(
      const std::vector<std::string> all,
      options_.context.group->Gather(TensorsToBytes(computed.logits)));
  std::vector<std::vector<torch::Tensor>> logits;
  for (size_t turn = 0; turn < computed.num_batches && rank() == 0; ++turn) {
    logits.push_back(TensorsFromBytes(all[turn]));
  }
  return logits;
}

absl::StatusOr<bool> EvaluationRun::AddNext() {
  ComputedBatches computed;
  ETC_RETURN_IF_ERROR(options_.context.Agree(
      NamingOutOfMemory([&] { return WhatIsDone(options_); },
                        [&] { return Compute(&computed); })));
  if (computed.num_batches == 0) {
    return false;
  }
  ETC_ASSIGN_OR_RETURN(const auto logits, GatherLogits(computed));
  for (size_t turn = 0; turn < logits.size(); ++turn) {
    evaluation_.predictions->Add(computed.batches[turn], logits[turn]);
  }
  evaluation_.num_examples += computed.num_examples;
  records_done_ = computed.num_records;
  return true;
}

absl::Status EvaluationRun::Score() {
  if (rank() == 0) {
    evaluation_.metrics = evaluation_.predictions->Score();
  }
  evaluation_.skipped = loader_.skipped();
  if (options_.context.group == nullptr) {
    return absl::OkStatus();
  }
  // Names, and values to the bit.
  std::string names;
  std::vector<double> values;
  for (const auto& [name, value] : evaluation_.metrics) {
    absl::StrAppend(&names, name, "\n");
    values.push_back(value);
  }
  ETC_ASSIGN_OR_RETURN(const std::vector<std::string> all_names,
                       options_.context.group->Gather(names));
  const std::vector<std::string> first =
      absl::StrSplit(all_names.front(), '\n', absl::SkipEmpty());
  values.resize(first.size());
  const torch::Tensor numbers = torch::tensor(values, torch::kFloat64);
  ETC_RETURN_IF_ERROR(options_.context.group->Broadcast({numbers}));
  evaluation_.metrics.clear();
  for (size_t i = 0; i < first.size(); ++i) {
    evaluation_.metrics.emplace_back(first[i], numbers.data_ptr<double>()[i]);
  }
  return absl::OkStatus();
}

}  // namespace

EvaluateOptions EvaluateOptionsFromConfig(const RunConfig& config) {
  return {.loader = {.batch_size = config.train.evaluation_batch_size,
                     .workers = config.data.workers,
                     .on_bad_record = OnBadRecordOf(config.data),
                     .max_prefetch_bytes = CacheBytesOf(config.data)}};
}

absl::StatusOr<Evaluation> Evaluate(TrainableModel* model, const Task& task,
                                    const ExampleSource& records,
                                    const EvaluateOptions& options) {
  return NamingOutOfMemory(
      [&] { return WhatIsDone(options); },
      [&] { return EvaluationRun(model, task, records, options).Run(); });
}

absl::Status WithBatchAdvice(const absl::Status& status, int64_t batch_size) {
  return IsOutOfMemory(status) && batch_size > 1
             ? absl::ResourceExhaustedError(absl::StrCat(
                   status.message(), "; a batch size of 1 takes less"))
             : status;
}

absl::Status ProbeMetric(TrainableModel* model, const Task& task,
                         const ExampleSource& records,
                         const EvaluateOptions& options,
                         const std::string& metric) {
  constexpr int64_t kFew = 8;
  EvaluateOptions quiet = options;
  quiet.context.reporter = nullptr;
  // Few first: the name of a metric may be misspelt.
  for (int64_t count = kFew;; count *= kFew) {
    ETC_ASSIGN_OR_RETURN(
        const Evaluation some,
        Evaluate(model, task, FirstRecords(&records, count), quiet));
    const absl::Status found = CheckHasMainMetric(some.metrics, metric);
    if (found.ok() || count >= records.size()) {
      return found;
    }
    if (count == kFew) {
      options.context.Message(absl::StrCat(
          "the first ", kFew, " records for evaluation have no score ",
          QuotedName(metric), ": looking for it among the others"));
    }
  }
}

}  // namespace etc
