#ifndef ETC_TASKS_TRAIN_CHECKPOINT_SPACE_H_
#define ETC_TASKS_TRAIN_CHECKPOINT_SPACE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "tasks/config/config.h"
#include "tasks/train/trained_counts.h"

namespace etc {

// Bytes on disk of a configuration's checkpoints.
struct CheckpointSpace {
  // A checkpoint: the weights, and the optimizer's state of all processes.
  double one = 0;
  // The most of one seed: those that train.keep_last and train.keep_best keep,
  // of those that are made, and the one that is being written.
  double seed = 0;
  // The most of all seeds, which are trained one after the other.
  double all = 0;
};

// Estimates them by the parameters; `made` are the most that one seed makes
// (MostCheckpoints), if that is known.
CheckpointSpace EstimateCheckpoints(const RunConfig& config,
                                    const TrainedCounts& parameters,
                                    std::optional<int64_t> made);

// A warning if the file system of `config.output` has no room for checkpoints
// of `bytes`, beside those of these seeds that are there already and will be
// replaced; empty: it has, or does not say.
std::string DiskWarning(const RunConfig& config, double bytes);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_CHECKPOINT_SPACE_H_
