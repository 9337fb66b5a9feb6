#ifndef ETC_TASKS_TRAIN_FINETUNE_H_
#define ETC_TASKS_TRAIN_FINETUNE_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tasks/config/config.h"
#include "tasks/output/results.h"
#include "tasks/task/task.h"
#include "tasks/train/open_data.h"
#include "tasks/train/progress.h"
#include "tasks/train/run_claims.h"
#include "tasks/train/trainer.h"

namespace etc {

// Sets the CPU threads of LibTorch, and starts them; 0: as many as
// OMP_NUM_THREADS says, by which launchers divide the cores, or as there are
// cores. Returns how many it works with.
//   kResourceExhausted  the system starts fewer
absl::StatusOr<int64_t> SetThreads(int64_t threads);

struct FinetuneOptions {
  // Go on where an earlier call with this configuration stopped: runs that are
  // finished are kept as they are.
  bool resume = false;
  // Fields of the configuration ("train.learning_rate"), or objects in it, that
  // may differ from those that the runs to resume began with.
  std::vector<std::string> allow_changes = {};
  RunReporter* reporter = nullptr;  // not null
  // See RunOptions.
  const std::atomic<bool>* stop = nullptr;
  ProcessGroup* group = nullptr;
  // The directories of the runs, if the caller has claimed them (in the first
  // process); null: they are claimed here.
  const RunClaims* claims = nullptr;
  // Result of OpenRunData for the same data and task; null: it is opened here.
  const RunData* data = nullptr;
  // Updates of the runs after these, for the time left.
  int64_t later_steps = 0;
};

// Checks the options as far as possible before anything is read.
absl::Status CheckWithoutData(const FinetuneConfig& config,
                              const FinetuneOptions& options);

// Claims the directories of all seeds, on rank 0.
//   kFailedPrecondition, kAlreadyExists, kUnavailable  as of RunClaims::Take
absl::StatusOr<RunClaims> ClaimRuns(const FinetuneConfig& config,
                                    const FinetuneOptions& options);

// Returns the updates of all seeds, if Finetune() can begin them: checks
// settings, data, device and memory as far as possible before the first update.
// Errors as of Finetune().
absl::StatusOr<int64_t> CheckRuns(const FinetuneConfig& config,
                                  const RunData& data,
                                  const FinetuneOptions& options);

// Fine-tunes as `config` describes: finds the device, sets the threads, opens
// the data, trains once for each seed in <output>/seed-<seed> (see
// TrainOneSeed), and puts the scores of all into <output>/summary.json. Errors
// also as of DeviceOfRun.
absl::StatusOr<FinetuneResult> Finetune(const FinetuneConfig& config,
                                        const Task& task,
                                        const FinetuneOptions& options);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_FINETUNE_H_
