#ifndef ETC_TASKS_TRAIN_DRY_RUN_H_
#define ETC_TASKS_TRAIN_DRY_RUN_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "tasks/config/config.h"
#include "tasks/metrics.h"
#include "tasks/task/task.h"
#include "tasks/train/run.h"

namespace etc {

// A run as far as it goes without an update.
struct DryRun {
  std::string output;
  int64_t num_seeds = 1;
  // Updates of one seed, and the examples that its data have.
  int64_t num_steps = 0;
  int64_t num_examples = 0;
  bool has_batches = false;  // num_examples are batches
  int64_t num_records = 0;   // of training
  int64_t num_dev_records = 0;
  // The most evaluations of one seed.
  int64_t num_evaluations = 0;
  int64_t num_parameters = 0;  // that are trained
  // The first micro-batch of each rank, forward and backward: examples, long
  // and global tokens without padding, loss, and seconds when it is not the
  // first to be run. 0 without an update.
  int64_t examples = 0;
  int64_t tokens = 0;
  double loss = 0;
  double seconds = 0;
  // The same of the largest micro-batch, with padding, of those that were read.
  int64_t largest_examples = 0;
  int64_t largest_tokens = 0;
  double largest_seconds = 0;
  // One evaluation batch; 0 without data to evaluate on.
  int64_t evaluated_examples = 0;
  double evaluation_seconds = 0;
  // Estimates for the whole run: seconds of all seeds if all micro-batches were
  // like the first or the largest, and bytes that updates and evaluations take
  // on the CPU, and cached examples besides. Those of evaluations are 0 without
  // data to evaluate on, and for an encoder-decoder.
  double total_seconds = 0;
  double largest_total_seconds = 0;
  double step_bytes = 0;
  double evaluation_bytes = 0;
  double cache_bytes = 0;
  // The most that the checkpoints of all seeds take on disk.
  double checkpoint_bytes = 0;
};

// Does what a training does but for the updates: checks the configuration and
// the output directory, reads the data and says the same about them, makes the
// model with its first weights, and reads batches of one epoch at most: as many
// as have 1000 examples (of translation, micro-batches), and 10,000,000 tokens
// if all were of full length, but one at least. Says how many of their records
// are not used, or cut. Computes the largest micro-batch and the first forward
// and backward, the loss of the first in evaluation mode, as before a
// checkpoint, and one evaluation batch. Writes nothing, makes no directory and
// takes no lock. A collective operation.
//   kInvalidArgument  it would go on from a checkpoint (Resumes)
// Errors also as of OpenRunData, CheckRuns and TrainChecked.
absl::StatusOr<DryRun> TryTrain(const RunConfig& config, const Task& task,
                                const TrainOptions& options);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_DRY_RUN_H_
