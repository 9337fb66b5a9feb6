#ifndef ETC_TASKS_RUNS_AVERAGE_CHECKPOINTS_H_
#define ETC_TASKS_RUNS_AVERAGE_CHECKPOINTS_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace etc {

// The checkpoints of a run to be averaged.
struct AverageOptions {
  // The directory `checkpoints` of a seed, the seed's, or that of a run with
  // one seed.
  std::string directory;
  // The number of checkpoints: those with the most updates. Unset: 10, or as
  // many as there are, but at least 2.
  std::optional<int64_t> last = std::nullopt;
  // Checkpoints with more updates than this are left out.
  int64_t up_to_step = std::numeric_limits<int64_t>::max();
};

// The checkpoints that AverageOptions choose, by updates.
struct CheckpointsToAverage {
  std::vector<std::string> directories;
  std::vector<int64_t> steps;
  // Parent of the directory `checkpoints`: the place for an average.
  std::string seed_directory;
};

// Finds the whole checkpoints of the run (CheckpointSurvey::whole), but no
// interim ones, and none older than train.keep_last kept, which are there for
// their scores. Of two after the same number of updates the later counts.
//   kNotFound            there are no whole checkpoints of a run at the path
//   kInvalidArgument     there are too few; the path is that of one checkpoint;
//                        a run_config.json is none
//   kFailedPrecondition  the path is that of a run with several seeds; the
//                        message lists them
// Throws c10::Error if `last` is below 1.
absl::StatusOr<CheckpointsToAverage> FindCheckpointsToAverage(
    const AverageOptions& options);

// Writes a checkpoint directory whose floating-point tensors are the arithmetic
// means of those in `checkpoints.directories`, summed in float32, or float64 if
// they are that, and then divided (Vaswani et al. 2017; doc/translation.md
// 4.7). Configuration, vocabulary and tensors of integers are those of the last
// one; its state of training is left out, so no run is resumed from an average.
// average.json says what was averaged. The directory gets its name, and with
// `overwrite` takes the place of an earlier average (IsAverage), when all of it
// is on disk.
//   kAlreadyExists    there is something else at `output`, or not `overwrite`
//   kInvalidArgument  the checkpoints have other tensors, shapes or dtypes than
//                     the first one, or an element that is infinite or not a
//                     number; `output` is among the checkpoints of the run
//   kDataLoss         a checkpoint is not as it was written
// and the system's errors.
absl::Status AverageCheckpoints(const CheckpointsToAverage& checkpoints,
                                const std::string& output,
                                bool overwrite = false);

}  // namespace etc

#endif  // ETC_TASKS_RUNS_AVERAGE_CHECKPOINTS_H_
