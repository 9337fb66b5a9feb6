#ifndef ETC_TASKS_TRAIN_OPEN_DATA_H_
#define ETC_TASKS_TRAIN_OPEN_DATA_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tasks/config/config.h"
#include "tasks/data/data_files.h"
#include "tasks/data/example_source.h"
#include "tasks/data/record_check.h"
#include "tasks/data/record_gate.h"
#include "tasks/data/record_source.h"
#include "tasks/task/task.h"
#include "tasks/train/run_context.h"

namespace etc {

// A progress callback that reports how many of all the bytes have been read,
// and fails when the context is stopped.
//   kCancelled  it was stopped
FilesListener OpeningListener(const RunContext& context);

// Task::Open, with the listener and the group of the context in the place of
// those of `request`. `task` must outlive the result. A collective operation:
// all ranks return the error of one.
//   kCancelled  the context was stopped
absl::StatusOr<std::unique_ptr<ExampleSource>> OpenRecords(
    const Task& task, DataRequest request, const RunContext& context = {});

// Checks all records to evaluate or, by `use`, to predict for
// (CheckRecordsAndIds), so that no run meets a mistake of them late. Reports
// progress. Records of no official files are as they should be: none is
// counted. A collective operation.
//   kInvalidArgument  a mistake in them
//   kCancelled        the context was stopped
absl::StatusOr<RecordCounts> CheckEvaluationRecords(
    const DataConfig& config, const ExampleSource& records,
    const RunContext& context, RecordUse use = RecordUse::kEvaluation);

// The data of runs that make the same examples, opened. The memory for cached
// examples is divided between the two by their numbers of records.
struct RunData {
  std::unique_ptr<ExampleSource> train_records;
  std::unique_ptr<ExampleSource> dev_records;
  // Null: all training records are used.
  std::unique_ptr<ExampleSource> first_records;
  std::unique_ptr<ExampleSource> train;
  std::unique_ptr<ExampleSource> dev;
  // Counts of the records of `dev` that have no mistake.
  RecordCounts dev_counts;
  // The largest batch that `train` is known to fill, as far as it was checked.
  int64_t filled_batch = 0;
};

// Checks that `data` have the evaluations that fields of `config` need.
//   kInvalidArgument  there is nothing to evaluate, or no answer to score
absl::Status CheckEvaluations(const RunConfig& config, const RunData& data);

// Opens the files of `config`; `train` are the first train.max_examples of the
// training records. A warning says that there is nothing to evaluate. `task`
// must outlive the data. A collective operation.
//   kInvalidArgument  there is nothing to train on, or a mistake in a file
// Errors also as of CheckEvaluations, which others that share the data call for
// their own configuration.
absl::StatusOr<std::unique_ptr<RunData>> OpenRunData(const RunConfig& config,
                                                     const Task& task,
                                                     const RunContext& context);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_OPEN_DATA_H_
