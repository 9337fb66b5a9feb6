#ifndef ETC_TESTS_SUPPORT_TRAIN_RUNS_H_
#define ETC_TESTS_SUPPORT_TRAIN_RUNS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "tasks/config/config.h"
#include "tasks/task/task.h"
#include "tasks/train/open_data.h"
#include "tasks/train/run_claims.h"
#include "tasks/train/shared_start.h"
#include "tasks/train/train_runs.h"

namespace etc {

// Trains on a task that need not be registered, from the first check on.
inline absl::StatusOr<TrainResult> TrainRuns(const RunConfig& config,
                                             const Task& task,
                                             const TrainOptions& options) {
  ETC_RETURN_IF_ERROR(CheckSameStart(config, options));
  ETC_RETURN_IF_ERROR(CheckWithoutData(config, options));
  ETC_ASSIGN_OR_RETURN(const RunClaims claims, ClaimRuns(config, options));
  ETC_ASSIGN_OR_RETURN(const std::unique_ptr<RunData> data,
                       OpenRunData(config, task, options.context));
  ETC_ASSIGN_OR_RETURN(const CheckedRuns checked,
                       CheckRuns(config, task, data.get(), options));
  return TrainChecked(config, task, checked, claims, options);
}

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_TRAIN_RUNS_H_
