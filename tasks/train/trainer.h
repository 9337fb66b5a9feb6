#ifndef ETC_TASKS_TRAIN_TRAINER_H_
#define ETC_TASKS_TRAIN_TRAINER_H_

#include "absl/status/statusor.h"
#include "tasks/output/results.h"
#include "tasks/train/run.h"

namespace etc {

// Trains one model with one seed (see TrainStep for what an update is). A
// resumed run goes on with the very numbers that it would have had.
//
// Every `evaluate_every` updates and at the end the model is saved and then
// evaluated, and with `evaluate_at_start` before the first update; it is also
// saved every `checkpoint_every` updates or `checkpoint_minutes`, and at a
// stop. An evaluation may end the run (HasEndedEarly). A checkpoint holds the
// files of ModelWithFiles::save, training_state.safetensors and, once it was
// evaluated, evaluation.json and predictions.json. CheckpointStore has the last
// and the best ones.
//
// An error in mid-training, as in a record that is reached then, saves the
// updates before it, too, by rank 0 alone and without waiting for others; the
// message says where, or why they are lost: the optimizer's state is sharded
// and a rank is missing, or the error came while an update was applied.
//
// Weights are saved only after they gave a finite loss on a micro-batch or,
// where memory for that was lacking, are finite themselves, so that every
// checkpoint is a good one. A start that is refused changes nothing in the
// directory.
//
//   kAborted             loss, gradient or weights became infinite or not a
//                        number; the message names the last good checkpoint
//   kFailedPrecondition  the run to resume had other settings; a process has
//                        other settings than the first; the checkpoints in the
//                        directory are not whole or of other runs
//   kDataLoss            a file of the checkpoint is not as it was written
//
// With several ranks, rank 0 has the directory: it alone reads and writes
// there, and broadcasts the start to the others. They make the same updates as
// one process would, but for the order in which gradients are summed; with the
// same number of ranks, to the bit. An error of one is returned on all.
//   kUnavailable         another process has ended
absl::StatusOr<RunResult> TrainOneSeed(const RunOptions& options);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_TRAINER_H_
