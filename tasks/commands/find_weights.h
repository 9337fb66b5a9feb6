#ifndef ETC_TASKS_COMMANDS_FIND_WEIGHTS_H_
#define ETC_TASKS_COMMANDS_FIND_WEIGHTS_H_

#include <string>

#include "absl/status/statusor.h"

namespace etc {

// Returns the weights that `path` names: itself, or for the directory of a run,
// a seed or a grid the checkpoint that stands for it (FindCheckpoint), which is
// then reported on standard error. A path without weights that is no such
// directory is returned as it is: opening it gives the error.
//   kDataLoss            a checkpoint is not as it was written
//                        (CheckCheckpointFiles)
//   kFailedPrecondition  errors of FindCheckpoint
absl::StatusOr<std::string> FindWeights(const std::string& path);

}  // namespace etc

#endif  // ETC_TASKS_COMMANDS_FIND_WEIGHTS_H_
