#ifndef ETC_TASKS_TRAIN_EVALUATE_H_
#define ETC_TASKS_TRAIN_EVALUATE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tasks/config/config.h"
#include "tasks/data/evaluation_loader.h"
#include "tasks/data/example_source.h"
#include "tasks/data/record_gate.h"
#include "tasks/metrics.h"
#include "tasks/task/task.h"
#include "tasks/train/run_context.h"
#include "tasks/train/task_model.h"

namespace etc {

// A model's predictions for a data set, and their scores. With several ranks
// rank 0 has the predictions and the skipped records, and all have the scores.
struct Evaluation {
  // The scores; empty if the data have no answers.
  Metrics metrics;
  int64_t num_examples = 0;
  SkippedRecords skipped;
  double seconds = 0;
  // Null: the model predicts nothing that has a file.
  std::unique_ptr<TaskPredictions> predictions;
};

struct EvaluateOptions {
  // `stop` and `group` are those of the context.
  EvaluationLoader::Options loader = {};
  // Batches are dealt to its ranks.
  RunContext context = {};
};

// The fields of `config` that evaluations depend on.
EvaluateOptions EvaluateOptionsFromConfig(const RunConfig& config);

// Runs the model over the records in their order, on the device of its
// parameters, without dropout and gradients. The model's mode is afterwards
// what it was.
//   kCancelled          the context says so
//   kInvalidArgument    a bad record, with OnBadRecord::kError; an id that
//                       comes again
//   kAborted            a logit is infinite or not a number; names the record
//   kResourceExhausted  out of memory
absl::StatusOr<Evaluation> Evaluate(TrainableModel* model, const Task& task,
                                    const ExampleSource& records,
                                    const EvaluateOptions& options);

// Returns `status` of an evaluation in batches of `batch_size` examples. Where
// it ran out of memory with several, its message also says that a batch size of
// 1 takes less.
absl::Status WithBatchAdvice(const absl::Status& status, int64_t batch_size);

// Checks that evaluations on `records` have the score `metric`. A few of them
// are evaluated for its name, and more as long as it is not among theirs: there
// are scores of some records alone, as SQuAD's of questions without an answer,
// and records without an answer, which have none.
//   kInvalidArgument  they have not
// Errors also as of Evaluate.
absl::Status ProbeMetric(TrainableModel* model, const Task& task,
                         const ExampleSource& records,
                         const EvaluateOptions& options,
                         const std::string& metric);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_EVALUATE_H_
