#ifndef ETC_TASKS_TRAIN_TRAINER_H_
#define ETC_TASKS_TRAIN_TRAINER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tasks/data/example_source.h"
#include "tasks/task.h"
#include "tasks/train/config.h"
#include "tasks/train/progress.h"
#include "tasks/train/run_files.h"

namespace etc {

// What one run is given. Everything must outlive the run.
struct RunOptions {
  const FinetuneConfig& config;
  const Task& task;
  const ExampleSource& train;
  // Null: the run is never evaluated.
  const ExampleSource* dev = nullptr;
  int64_t seed = 1;
  // Gets checkpoints/, metrics.jsonl and lock.
  std::string directory;
  // Go on from the last checkpoint in the directory, if there is one. Without
  // it a directory with checkpoints is refused.
  bool resume = false;
  // What the files of the configuration are: a run is only resumed with the
  // same ones.
  RunFiles files = {};
  // Fields that may differ from those that a resumed run began with.
  std::vector<std::string> allow_changes = {};
  RunReporter* reporter = nullptr;  // not null
  // Looked at before each micro-batch: true makes the run save and return. May
  // be null.
  const std::atomic<bool>* stop = nullptr;
};

struct RunResult {
  // False: the run was stopped and can be resumed.
  bool finished = false;
  int64_t seed = 0;
  std::string directory;
  int64_t steps = 0;
  // Scores of the last evaluation and of the best one by the task's main
  // metric; empty without evaluations.
  Metrics last;
  int64_t best_step = 0;
  Metrics best;
};

// Fine-tunes one model with one seed (see TrainStep for what an update is). A
// resumed run goes on with the very numbers that it would have had.
//
// Every `evaluate_every` updates and at the end the model is saved and then
// evaluated; it is also saved every `checkpoint_every` updates and at a stop. A
// checkpoint holds what WriteTaskModel writes, training_state.safetensors
// and, once it was evaluated, predictions.json and evaluation.json. The links
// checkpoints/last and checkpoints/best lead to it.
//
// Weights are saved only after they gave a finite loss on a micro-batch, so
// that every checkpoint is a good one. The run has the RunLock of its
// directory; a start that is refused changes nothing in it.
//
//   kAborted             loss, gradient or weights became infinite or not a
//                        number; the message names the last good checkpoint
//   kAlreadyExists       the directory has a run, and `resume` is false
//   kUnavailable         another process has a run there; the message says who
//   kFailedPrecondition  the run to resume had other settings
absl::StatusOr<RunResult> TrainOneSeed(const RunOptions& options);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_TRAINER_H_
