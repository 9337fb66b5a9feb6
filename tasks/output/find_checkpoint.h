#ifndef ETC_TASKS_OUTPUT_FIND_CHECKPOINT_H_
#define ETC_TASKS_OUTPUT_FIND_CHECKPOINT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace etc {

// A checkpoint that stands for a run.
struct FoundCheckpoint {
  std::string directory;
  // The reason for this one ("the best of 3 seeds by accuracy, 0.7921"); empty
  // if the path that was given is itself a checkpoint.
  std::string reason;
};

// The checkpoint that `path` names, which is one of
//
//   a checkpoint directory  itself (it has run_config.json)
//   .../checkpoints/best    the same without links (CheckpointSurvey); last too
//   a seed's directory      its best checkpoint, or its last if it was never
//                           evaluated
//   a run's directory       (output of a configuration) that of its only seed,
//                           or of the best by the main metric in summary.json
//   a grid's directory      (it has grid.json) that of its best setting's run
//
//   kNotFound            it is none of them
//   kFailedPrecondition  a run or a seed without a checkpoint yet, or with
//                        damaged ones alone. Several seeds of which
//                        summary.json does not say which is the best; the
//                        message lists their directories. A grid of which no
//                        setting has scores yet
absl::StatusOr<FoundCheckpoint> FindCheckpoint(const std::string& path);

// The files below the checkpoint `directory` and the other checkpoints of its
// run, and the logs and scores of the run and of a grid that it may be in: no
// output may replace them.
std::vector<std::string> FilesOfCheckpoint(const std::string& directory);

}  // namespace etc

#endif  // ETC_TASKS_OUTPUT_FIND_CHECKPOINT_H_
