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
  // Official files; empty: the dev files of the checkpoint's configuration. Of
  // the training data of a run that held some of their records out, whatever
  // their place is now, evaluations take those alone, and say so.
  std::vector<std::string> data;
  // FIELD=VALUE: fields of the object "data" (FieldRule::reads_files) and
  // options of the task (TaskEntry::reading_options) that say how files are
  // read and cut into examples, and those that say how answers are decoded
  // (decoding_options).
  std::vector<std::string> overrides;
  // "off", "sum", "mean", "decay" or "gate", or with a number "decay=0.95" (its
  // beta) or "gate=0.5" (gates that the weights lack); empty: as the weights
  // say.
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

  // Gets each warning, as if the residual attention is not that of the
  // training. Not empty.
  std::function<void(const std::string& warning)> warn;
  // Its reporter also hears which checkpoint was taken.
  RunContext context = {};
};

struct CheckpointRun {
  // The checkpoint that was taken, without links: those of a run that is still
  // training move on.
  std::string directory;
  RunConfig config;
  // The source of the predictions; must outlive them.
  TaskSetup setup;
  Evaluation evaluation;
};

// The configuration with which the checkpoint in `directory` is run.
//   kInvalidArgument  it is of pre-training, and `options.predicts`; one of
//                     `options.overrides` sets another field. Lengths that the
//                     model's positions do not reach are refused by SetUpTask
absl::StatusOr<RunConfig> ConfigOfRun(const std::string& directory,
                                      const CheckpointRunOptions& options);

// Checks that `config`, that of the run in `directory`, has an encoder alone,
// for a `command` that looks at no other model.
//   kInvalidArgument  it is an encoder-decoder
absl::Status CheckIsEncoder(const std::string& directory,
                            const RunConfig& config, absl::string_view command);

// LoadTaskModel, with a message about memory that runs out.
//   kInvalidArgument  EncoderTaskOf
absl::StatusOr<TaskModel> LoadModelOfRun(const std::string& directory,
                                         const RunConfig& config,
                                         const Task& task,
                                         const torch::Device& device);

// Evaluates or predicts as `options` say. All records are checked before the
// model is loaded (CheckEvaluationRecords). Errors also as of DeviceOfRun and
// SetThreads.
//   kFailedPrecondition  no record has an answer, and `options.needs_scores`
absl::StatusOr<CheckpointRun> RunCheckpoint(
    const CheckpointRunOptions& options);

}  // namespace etc

#endif  // ETC_TASKS_RUNS_CHECKPOINT_RUN_H_
