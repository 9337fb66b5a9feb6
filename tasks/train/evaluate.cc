#include "tasks/train/evaluate.h"

#include <torch/utils.h>

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "base/stop_guard.h"
#include "tasks/data/batch.h"
#include "tasks/data/evaluation_loader.h"
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
  return absl::StrCat("evaluating ", options.batch_size, " examples at a time");
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

// One batch for each rank.
struct Round {
  // Batches of the round; on rank 0 alone.
  std::vector<Batch> batches;
  size_t num_batches = 0;
  int64_t num_examples = 0;
  std::vector<torch::Tensor> logits;  // of this process's batch
};

// An evaluation: rank r runs batch r of each round.
class EvaluationRun {
 public:
  EvaluationRun(TrainableModel* model, const ExampleSource& records,
                const EvaluateOptions& options)
      : model_(model),
        options_(options),
        device_(DeviceOf(model->NamedParameters())),
        loader_(&records, {.batch_size = options.batch_size,
                           .workers = options.workers,
                           .on_bad_record = options.on_bad_record,
                           .predicts = options.predicts,
                           .max_prefetch_bytes = options.max_prefetch_bytes,
                           .stop = options.context.stop,
                           .group = DataGroupOf(options.context.group)}) {}

  // Adds the predictions of the next batches; false at the end.
  absl::StatusOr<bool> Next(Evaluation* evaluation);
  // Scores all, with the same result on all ranks.
  absl::Status Score(Evaluation* evaluation);

 private:
  int64_t rank() const { return options_.context.rank(); }
  absl::Status Compute(Round* round);
  // The logits of all batches of a round, in their order.
  absl::StatusOr<std::vector<std::vector<torch::Tensor>>> LogitsOfAll(
      const Round& round);

  TrainableModel* const model_;
  const EvaluateOptions& options_;
  const torch::Device device_;
  EvaluationLoader loader_;
};

absl::Status EvaluationRun::Compute(Round* round) {
  // Collective operations come first.
  ETC_ASSIGN_OR_RETURN(EvaluationRound examples, loader_.Next());
  if (options_.context.is_stopped()) {
    return Cancelled();
  }
  round->num_batches = examples.batches.size();
  round->num_examples = examples.num_examples;
  for (size_t turn = 0; turn < examples.batches.size(); ++turn) {
    const bool is_own = static_cast<int64_t>(turn) == rank();
    if (!is_own && rank() != 0) {
      continue;
    }
    Batch batch = MakeBatch(std::move(examples.batches[turn]),
                            is_own ? device_ : torch::kCPU);
    if (is_own) {
      ETC_ASSIGN_OR_RETURN(round->logits, FiniteLogits(model_, batch));
    }
    round->batches.push_back(std::move(batch));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::vector<torch::Tensor>>>
EvaluationRun::LogitsOfAll(const Round& round) {
  if (options_.context.group == nullptr) {
    return std::vector<std::vector<torch::Tensor>>{round.logits};
  }
  ETC_ASSIGN_OR_RETURN(
      const std::vector<std::string> all,
      options_.context.group->Gather(TensorsToBytes(round.logits)));
  std::vector<std::vector<torch::Tensor>> logits;
  for (size_t turn = 0; turn < round.num_batches && rank() == 0; ++turn) {
    logits.push_back(TensorsFromBytes(all[turn]));
  }
  return logits;
}

absl::StatusOr<bool> EvaluationRun::Next(Evaluation* evaluation) {
  Round round;
  const absl::Status computed = NamingOutOfMemory(
      [&] { return WhatIsDone(options_); }, [&] { return Compute(&round); });
  ETC_RETURN_IF_ERROR(options_.context.Agree(computed));
  if (round.num_batches == 0) {
    return false;
  }
  ETC_ASSIGN_OR_RETURN(const auto logits, LogitsOfAll(round));
  for (size_t turn = 0; turn < logits.size(); ++turn) {
    evaluation->predictions->Add(round.batches[turn], logits[turn]);
  }
  evaluation->num_examples += round.num_examples;
  return true;
}

absl::Status EvaluationRun::Score(Evaluation* evaluation) {
  if (rank() == 0) {
    evaluation->metrics = evaluation->predictions->Score();
  }
  evaluation->skipped = loader_.skipped();
  if (options_.context.group == nullptr) {
    return absl::OkStatus();
  }
  // Names, and values to the bit.
  std::string names;
  std::vector<double> values;
  for (const auto& [name, value] : evaluation->metrics) {
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
  evaluation->metrics.clear();
  for (size_t i = 0; i < first.size(); ++i) {
    evaluation->metrics.emplace_back(first[i], numbers.data_ptr<double>()[i]);
  }
  return absl::OkStatus();
}

absl::StatusOr<Evaluation> EvaluateWithinMemory(
    TrainableModel* model, const Task& task, const ExampleSource& records,
    const EvaluateOptions& options) {
  const torch::NoGradGuard no_grad;
  const EvaluationMode mode(model);
  const double begin = SteadySeconds();
  Evaluation evaluation;
  evaluation.predictions = task.MakePredictions();
  EvaluationRun run(model, records, options);
  const StopGuard guard(options.context.stop);
  while (true) {
    ETC_ASSIGN_OR_RETURN(const bool added, run.Next(&evaluation));
    if (!added) {
      break;
    }
    if (options.context.reporter != nullptr) {
      options.context.reporter->Evaluating(
          {.examples = evaluation.num_examples, .num_records = records.size()});
    }
  }
  ETC_RETURN_IF_ERROR(run.Score(&evaluation));
  evaluation.seconds = SteadySeconds() - begin;
  return evaluation;
}

}  // namespace

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
      [&] { return WhatIsDone(options); },
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
