#ifndef ETC_TASKS_TRAIN_TRAIN_RUNS_H_
#define ETC_TASKS_TRAIN_TRAIN_RUNS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tasks/config/config.h"
#include "tasks/output/results.h"
#include "tasks/task/task.h"
#include "tasks/train/device.h"
#include "tasks/train/open_data.h"
#include "tasks/train/run.h"
#include "tasks/train/run_claims.h"
#include "tasks/train/run_context.h"

namespace etc {

// Says about the runs of `config`, after SetThreads, what is known before the
// first update: their data, with warnings, the device, and updates or
// evaluations that may not fit in memory, or checkpoints on disk. `config` is
// as of WithCacheOf. A collective operation.
//   kInvalidArgument  errors of Task::DescribeData
absl::Status AnnounceRuns(const RunConfig& config, const Task& task,
                          const RunData& data, const RunDevice& device,
                          const RunContext& context);

// Checks the options as far as possible before anything is read, on rank 0, as
// others may not have the directory.
absl::Status CheckWithoutData(const RunConfig& config,
                              const TrainOptions& options);

// Claims the directories of all seeds, on rank 0.
//   kFailedPrecondition, kAlreadyExists, kUnavailable  as of RunClaims::Take
absl::StatusOr<RunClaims> ClaimRuns(const RunConfig& config,
                                    const TrainOptions& options);

// The runs of a configuration whose device, memory and data are checked.
struct CheckedRuns {
  const RunData* data = nullptr;
  RunDevice device;
  // Updates that all seeds together have left.
  int64_t steps_left = 0;
};

// Checks device, memory and data, after CheckSameStart, CheckWithoutData and
// OpenRunData, as far as possible before the first update. Notes in `data` the
// batch that they fill. A collective operation.
//   kInvalidArgument     the data give no update, or lack the evaluations that
//                        fields need
//   kFailedPrecondition  they fill no batch
//   kResourceExhausted   the model does not fit the memory
// Errors also as of JoinDevice.
absl::StatusOr<CheckedRuns> CheckRuns(const RunConfig& config, const Task& task,
                                      RunData* data,
                                      const TrainOptions& options);

// Trains as `config` describes, after CheckRuns and ClaimRuns: sets the
// threads, trains once for each seed in <output>/seed-<seed> (see
// TrainOneSeed), and puts the scores of all into <output>/summary.json.
absl::StatusOr<TrainResult> TrainChecked(const RunConfig& config,
                                         const Task& task,
                                         const CheckedRuns& checked,
                                         const RunClaims& claims,
                                         const TrainOptions& options);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_TRAIN_RUNS_H_
