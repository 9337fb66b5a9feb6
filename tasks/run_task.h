#ifndef ETC_TASKS_RUN_TASK_H_
#define ETC_TASKS_RUN_TASK_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tasks/metrics.h"
#include "tasks/output/earlier_run.h"

namespace etc {

// The benchmarks as a program uses them: `realetc train`, `evaluate`,
// `predict` and `score` without their output.
//
// A run, of TrainTask or EvaluateTask, computes with LibTorch's generators
// and number of threads, which a process has once. So runs of several threads
// take turns: each waits for the others to end. Afterwards both are what they
// were. While a training goes on, nothing else in the process should draw
// from these generators, as new models do (Predictor::Open, LoadEncoder): it
// would train other weights.

// Callbacks during a run; each may be left out. They should begin no other run:
// that throws c10::Error.
struct TaskCallbacks {
  // Called with messages, such as the weights loaded, the result of an
  // evaluation. Lines without a newline.
  std::function<void(const std::string& line)> message = {};
  // Called with warnings: about settings and data that are allowed, but likely
  // not meant, and about what goes wrong without ending the run.
  std::function<void(const std::string& line)> warning = {};
  // True stops the run: a training saves and can be resumed, an evaluation
  // ends with kCancelled, and so does a run that waits for others.
  const std::atomic<bool>* stop = nullptr;
};

// Arguments of TrainTask.
struct TrainTaskOptions {
  // The configuration, a JSON file (doc/configuration.md).
  std::string config = {};
  // Changes of its fields: "train.epochs=2", as of --set.
  std::vector<std::string> overrides = {};
  // Fate of a run that is in the output directory already.
  EarlierRun earlier = EarlierRun::kRefuse;
  // Fields of the configuration ("train.learning_rate"), or objects in it, that
  // may differ from those that the run to resume began with.
  std::vector<std::string> allow_changes = {};
  TaskCallbacks callbacks = {};
};

// A setting of the configuration's grid; without one, the whole run.
struct TrainTaskSetting {
  std::string directory = {};
  // Over all seeds, of the best evaluation of each; empty unless finished and
  // evaluated. A single seed has no deviations.
  Metrics medians = {};
  Metrics deviations = {};
  // For a grid: the way a loss became infinite or not a number; else empty.
  std::string diverged = {};
};

// Outcome of TrainTask: directories and scores.
struct TrainTaskResult {
  // False: stopped, and can be resumed.
  bool finished = false;
  // The directories of the seeds, each with checkpoints/best and last.
  std::vector<std::string> directories = {};
  // The medians of the setting whose main metric is best; empty unless all that
  // has not diverged is finished and evaluated.
  Metrics scores = {};
  // All settings in their order.
  std::vector<TrainTaskSetting> settings = {};
};

// Trains as the configuration says; all files go to its `output`. Messages
// name options as `realetc train` has them: --overwrite is
// EarlierRun::kOverwrite.
//   kNotFound            the configuration, or a file that it names; there is
//                        no run to resume
//   kInvalidArgument     a mistake in a file, with its place; a grid is to be
//                        overwritten
//   kAlreadyExists       there is a run in `output`, which is neither resumed
//                        nor overwritten
//   kUnavailable         another process trains there
//   kCancelled           stopped before there was anything to save
//   kAborted             a loss became infinite or not a number; of a grid, in
//                        all settings
//   kFailedPrecondition  the run to resume had other settings; there is no such
//                        device as train.device
//   kResourceExhausted   out of memory, or of threads
absl::StatusOr<TrainTaskResult> TrainTask(const TrainTaskOptions& options);

// Arguments of EvaluateTask.
struct EvaluateTaskOptions {
  // Directory that training wrote: of a checkpoint, or of a grid, run or
  // seed, whose best one is taken.
  std::string checkpoint = {};
  // Official files; empty: the dev files of the checkpoint's configuration. Of
  // the training data of a run that held records out of them, only these are
  // taken.
  std::vector<std::string> data = {};
  // "off", "sum", "mean", "decay" or "gate", or with a number "decay=0.95" (its
  // beta) or "gate=0.5" (gates that the weights lack); empty: as the weights
  // say.
  std::string residual_attention = {};
  // "auto" (CUDA where there is a device, else the CPU), "cpu", "cuda" or
  // "cuda:1".
  std::string device = "auto";
  // CPU threads; absent: as in training, 0: OMP_NUM_THREADS, or as many as
  // there are cores.
  std::optional<int64_t> threads = {};
  TaskCallbacks callbacks = {};
};

// Scores and predictions of EvaluateTask.
struct EvaluateTaskResult {
  int64_t num_examples = 0;
  // The official scores, the main metric among them; empty if the data have no
  // answers.
  Metrics scores = {};
  // The contents of the prediction file in the official format.
  std::string predictions = {};
};

// Runs a checkpoint over a data set.
//   kNotFound            the checkpoint, or a file
//   kInvalidArgument     a mistake in a file, with its place, or in `options`
//   kAborted             a logit is infinite or not a number
//   kFailedPrecondition  there is no such device
//   kCancelled           stopped
//   kResourceExhausted   out of memory, or of threads
absl::StatusOr<EvaluateTaskResult> EvaluateTask(
    const EvaluateTaskOptions& options);

// The scores of a prediction file against the data set `gold`. `task` is a name
// as in a configuration ("wikihop"); `config` is such a file, for tasks whose
// options decide how they are scored, or empty; `overrides` are applied to it
// as by ReadTaskConfig. Options that say how answers are decoded are for
// predictions that can be decoded anew: classify's with probabilities, by
// `threshold`, and squad's n-best answers, by `null_score_diff_threshold`.
//   kNotFound         there is no such task or file
//   kInvalidArgument  the task has no prediction files; a configuration of
//                     another task; an override that decides nothing; a mistake
//                     in a file, or records without prediction
absl::StatusOr<TaskScores> ScoreTask(
    const std::string& task, const std::string& gold,
    const std::string& predictions, ScoringRules rules = ScoringRules::kDefault,
    const std::string& config = "",
    const std::vector<std::string>& overrides = {});

// Returns the overall score of a benchmark that has several tasks ("glue"),
// from the directories of runs or grids on each of them: last, after the
// numbers that it is made of. The best setting of a grid counts.
//   kNotFound            there is no such task or run
//   kInvalidArgument     the task has no overall score, or a run is missing
//   kFailedPrecondition  a grid has no scores yet
absl::StatusOr<Metrics> ScoreRuns(const std::string& task,
                                  const std::vector<std::string>& directories);

}  // namespace etc

#endif  // ETC_TASKS_RUN_TASK_H_
