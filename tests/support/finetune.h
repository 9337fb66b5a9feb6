#ifndef ETC_TESTS_SUPPORT_FINETUNE_H_
#define ETC_TESTS_SUPPORT_FINETUNE_H_

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "tasks/config/config.h"
#include "tasks/task/task.h"
#include "tasks/train/finetune.h"
#include "tasks/train/shared_start.h"

namespace etc {

// Fine-tunes on a task that need not be registered, from the first check on.
inline absl::StatusOr<FinetuneResult> Finetune(const FinetuneConfig& config,
                                               const Task& task,
                                               const FinetuneOptions& options) {
  ETC_RETURN_IF_ERROR(CheckSameStart(config, options));
  ETC_RETURN_IF_ERROR(CheckWithoutData(config, options));
  ETC_ASSIGN_OR_RETURN(const RunClaims claims, ClaimRuns(config, options));
  return FinetuneClaimed(config, task, claims, options);
}

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_FINETUNE_H_
