#ifndef ETC_TASKS_TRAIN_EVALUATE_H_
#define ETC_TASKS_TRAIN_EVALUATE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tasks/data/example_source.h"
#include "tasks/data/loader.h"
#include "tasks/task.h"
#include "tasks/train/config.h"
#include "tasks/train/progress.h"
#include "tasks/train/task_model.h"

namespace etc {

struct OpenOptions {
  // Training needs answers: a record without one is a bad record there.
  RecordUse use = RecordUse::kEvaluation;
  // Hears how far the files have been read; may be null.
  RunReporter* reporter = nullptr;
  // True ends the opening. May be null.
  const std::atomic<bool>* stop = nullptr;
  // Longest record: data.max_record_megabytes, in bytes.
  uint64_t max_record_bytes = 64'000'000;
};

// Reports how many of all the bytes have been read, and stops, as `options`
// say; they must outlive the result.
//   kCancelled  `options.stop` became true
std::function<absl::Status(uint64_t bytes, uint64_t num_bytes)> OpeningListener(
    const OpenOptions& options);

// The records of the official files that `patterns` name
// (tasks/data/data_files.h), made into examples by `task`, which must outlive
// the result.
//   kCancelled  `options.stop` became true
absl::StatusOr<std::unique_ptr<ExampleSource>> OpenRecords(
    const std::vector<std::string>& patterns, const Task& task,
    const OpenOptions& options = {});

struct EvaluateOptions {
  int64_t batch_size = 8;
  int64_t workers = 1;
  OnBadRecord on_bad_record = OnBadRecord::kError;
  // Hears of each batch; may be null.
  RunReporter* reporter = nullptr;
  // Memory for examples that are made ahead of need.
  int64_t max_prefetch_bytes = std::numeric_limits<int64_t>::max();
  // Looked at before each record and batch: true ends the evaluation. May be
  // null.
  const std::atomic<bool>* stop = nullptr;
};

// What `config` says of evaluations.
EvaluateOptions EvaluateOptionsFromConfig(const FinetuneConfig& config);

// What a model says of a data set.
struct Evaluation {
  std::unique_ptr<TaskPredictions> predictions;
  // The scores; empty if the data have no answers.
  Metrics metrics;
  int64_t num_examples = 0;
  SkippedRecords skipped;
  double seconds = 0;
};

// Runs the model over the records in their order, without dropout and
// gradients. The model's mode is afterwards what it was.
//   kCancelled        `options.stop` became true
//   kInvalidArgument  a bad record, with OnBadRecord::kError
//   kAborted          a logit is infinite or not a number; names the record
absl::StatusOr<Evaluation> Evaluate(const TaskModel& model, const Task& task,
                                    const ExampleSource& records,
                                    const EvaluateOptions& options);

// The value of the task's main metric, or nothing.
std::optional<double> MainMetric(const Metrics& metrics, const Task& task);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_EVALUATE_H_
