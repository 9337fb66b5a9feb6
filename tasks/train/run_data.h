#ifndef ETC_TASKS_TRAIN_RUN_DATA_H_
#define ETC_TASKS_TRAIN_RUN_DATA_H_

#include <memory>

#include "absl/status/statusor.h"
#include "tasks/data/example_source.h"
#include "tasks/task.h"
#include "tasks/train/config.h"
#include "tasks/train/evaluate.h"

namespace etc {

// The data of runs that make the same examples, opened. The memory for cached
// examples is divided between the two by their numbers of records.
struct RunData {
  std::unique_ptr<ExampleSource> train_records;
  std::unique_ptr<ExampleSource> dev_records;
  std::unique_ptr<ExampleSource> train;
  std::unique_ptr<ExampleSource> dev;
};

// Opens the files of `config`. A message says that there is nothing to
// evaluate. `task` must outlive the data. `open.use` and
// `open.max_record_bytes` are set here.
//   kInvalidArgument  there is nothing to train on, or a mistake in a file
absl::StatusOr<std::unique_ptr<RunData>> OpenRunData(const DataConfig& config,
                                                     const Task& task,
                                                     OpenOptions open);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_RUN_DATA_H_
