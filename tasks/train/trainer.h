#ifndef ETC_TASKS_TRAIN_TRAINER_H_
#define ETC_TASKS_TRAIN_TRAINER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tasks/data/example_source.h"
#include "tasks/distributed/process_group.h"
#include "tasks/metrics.h"
#include "tasks/output/results.h"
#include "tasks/output/run_lock.h"
#include "tasks/train/evaluate.h"
#include "tasks/train/progress.h"
#include "tasks/train/run_plan.h"
#include "tasks/train/task_model.h"

namespace etc {

// One run. Everything that is referred to must outlive it.
struct RunOptions {
  const RunPlan& plan;
  const ExampleSource& train;
  // Makes the model, with random weights from LibTorch's generator. Called
  // once, when the generator has been seeded for the run.
  std::function<absl::StatusOr<std::unique_ptr<RunModel>>()> make_model;
  // Null: the run is never evaluated.
  const Evaluator* evaluator = nullptr;
  // Gets checkpoints/, metrics.jsonl and lock.
  std::string directory;
  // Go on from the last checkpoint in the directory, if there is one. Without
  // it a directory with checkpoints is refused.
  bool resume = false;
  // The lock of the directory, if the caller holds it; null: the run takes it.
  const RunLock* lock = nullptr;
  // Settings that may differ from those that a resumed run began with.
  std::vector<std::string> allow_changes = {};
  RunReporter* reporter = nullptr;  // not null
  // The processes that make this run together, each of which calls
  // TrainOneSeed; null: this one alone.
  ProcessGroup* group = nullptr;
  // Checked before each micro-batch: true makes the run save and return. May be
  // null.
  const std::atomic<bool>* stop = nullptr;
  // Updates of the runs after this one, for the time left.
  int64_t later_steps = 0;
};

// Trains one model with one seed (see TrainStep for the definition of an
// update). A resumed run goes on with the very numbers that it would have had.
//
// Every `evaluate_every` updates and at the end the model is saved and then
// evaluated; it is also saved every `checkpoint_every` updates and at a stop. A
// checkpoint holds the files of RunModel::Save, training_state.safetensors and,
// once it was evaluated, evaluation.json and the evaluator's predictions.json.
// CheckpointStore has the last and the best one.
//
// An error in mid-training, as in a record that is reached then, saves the
// updates before it, too, by rank 0 alone and without waiting for others; the
// message says where, or why they are lost: the optimizer's state is sharded
// and a rank is missing, or the error came while an update was applied.
//
// Weights are saved only after they gave a finite loss on a micro-batch, so
// that every checkpoint is a good one. The run holds the RunLock of its
// directory; a start that is refused changes nothing in it.
//
//   kAborted             loss, gradient or weights became infinite or not a
//                        number; the message names the last good checkpoint
//   kAlreadyExists       the directory has a run, and `resume` is false
//   kUnavailable         another process has a run there; the message says who
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
