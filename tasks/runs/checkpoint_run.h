#ifndef ETC_TASKS_RUNS_CHECKPOINT_RUN_H_
#define ETC_TASKS_RUNS_CHECKPOINT_RUN_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tasks/config/config.h"
#include "tasks/runs/task_setup.h"
#include "tasks/train/device.h"
#include "tasks/train/evaluate.h"
#include "tasks/train/run_context.h"
#include "tasks/train/task_model.h"

namespace etc {

// The paths of the files that a run reads, and the prefixes of those that it
// writes beside its predictions (PredictionFile).
struct CheckpointRunFiles {
  std::vector<std::string> read;
  std::vector<std::string> prefixes;
};

// A checkpoint's model to be run over a data set.
struct CheckpointRunOptions {
  // Directory that training wrote: of a checkpoint, or of a grid, run or
  // seed, whose best one is taken (FindCheckpoint).
  std::string checkpoint;
  // The task that it should be of, and the option that needs it, for messages
  // ("--bleu"); either may be empty.
  std::string task;
  std::string task_option;
  // Official files; empty: the dev files of the checkpoint's configuration. Of
  // the training data of a run that held some of their records out, whatever
  // their place is now, evaluations take those alone, and say so.
  std::vector<std::string> data;
  // FIELD=VALUE: fields of the object "data" (FieldRule::reads_files) and
  // options of the task (TaskEntry::reading_options) that say how files are
  // read and cut into examples, and those that say how answers are decoded
  // (decoding_options).
  std::vector<std::string> overrides;
  // As in EvaluateTaskOptions (tasks/run_task.h).
  std::string residual_attention;
  // Like train.device; the device of the training does not matter.
  std::string device = "auto";
  // True if the run makes a prediction file: answers are not read then.
  // Pre-training has no such file.
  bool predicts = false;
  // True if data in which no record has an answer are an error, found before
  // the model is loaded. Else they have no scores.
  bool needs_scores = false;
  // Called before the model is loaded, on rank 0 alone: with the files that are
  // read, and the prefixes of those that the task writes beside its predictions
  // (PredictionFile). Its error ends the run. May be empty.
  std::function<absl::Status(const CheckpointRunFiles& files)> check;
  // CPU threads and examples per batch; absent: those of the configuration.
  std::optional<int64_t> threads;
  std::optional<int64_t> batch_size;

  // Its reporter also hears which checkpoint was taken, and which device.
  RunContext context = {};
};

// A checkpoint that was found, with all that is known before its weights are
// loaded.
struct OpenedCheckpoint {
  // As FindCheckpoint names it, for people.
  std::string name;
  // The same without links: those of a run that is still training move on.
  std::string directory;
  // With what the options set.
  RunConfig config;
  TaskSetup setup;
  RunDevice device;
};

// Finds the checkpoint and says which, unless it was named itself; reads its
// configuration, makes its task and chooses the device. Warns of another
// residual attention than that of the training, and by TaskSetup::warnings.
// The configuration has what the options set; threads are not set, data not
// opened, and check and needs_scores not looked at.
//   kInvalidArgument  it is of another task than `options.task`, or of
//                     pre-training or translation, and `options.predicts`;
//                     one of `options.overrides` sets another field; lengths
//                     that the model's positions do not reach
// Errors also as of FindCheckpoint and DeviceOfRun.
absl::StatusOr<OpenedCheckpoint> OpenCheckpoint(
    const CheckpointRunOptions& options);

// Checks that a checkpoint has an encoder alone, for a `command` that looks at
// no other model.
//   kInvalidArgument  it is an encoder-decoder
absl::Status CheckIsEncoder(const OpenedCheckpoint& checkpoint,
                            absl::string_view command);

// LoadTaskModel, with a message about memory that runs out; then says which
// device it is on.
//   kInvalidArgument  EncoderTaskOf
absl::StatusOr<TaskModel> LoadModelOfRun(const OpenedCheckpoint& checkpoint,
                                         const RunContext& context);

struct CheckpointRun {
  // Its task is the source of the predictions, and must outlive them.
  OpenedCheckpoint checkpoint;
  Evaluation evaluation;
};

// Evaluates or predicts as `options` say. All records are checked before the
// model is loaded (CheckEvaluationRecords). Errors also as of OpenCheckpoint
// and SetThreads.
//   kFailedPrecondition  no record has an answer, and `options.needs_scores`;
//                        the ranks differ in weights, data or options
absl::StatusOr<CheckpointRun> RunCheckpoint(
    const CheckpointRunOptions& options);

}  // namespace etc

#endif  // ETC_TASKS_RUNS_CHECKPOINT_RUN_H_
