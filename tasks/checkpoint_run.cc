#include "tasks/checkpoint_run.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "etc/weights/pretraining_parameters.h"
#include "tasks/find_checkpoint.h"
#include "tasks/train/device.h"
#include "tasks/train/finetune.h"
#include "tasks/train/run_plan.h"
#include "tasks/train/shared_start.h"
#include "tasks/train/task_model.h"

namespace etc {
namespace {

// One that the scores were trained with needs them, and the other way round.
void WarnOfOtherResidual(const std::string& trained,
                         const CheckpointRunOptions& options) {
  if (options.residual_attention != trained) {
    options.warn(absl::StrCat(
        "residual attention: trained with ", trained, ", now ",
        options.residual_attention,
        "; the model has learnt with the scores of ", trained,
        ", so expect worse results: to compare the two, fine-tune with each"));
  }
}

// The configuration with which the checkpoint in `directory` is run.
absl::StatusOr<FinetuneConfig> ConfigOfRun(
    const std::string& directory, const CheckpointRunOptions& options) {
  ETC_ASSIGN_OR_RETURN(FinetuneConfig config, ReadTaskModelConfig(directory));
  if (options.predicts && config.task == kPretrainingTask) {
    return absl::InvalidArgumentError(
        absl::StrCat(directory,
                     " is of pre-training, which predicts nothing that has a "
                     "file: `realetc evaluate` scores it"));
  }
  if (!options.data.empty()) {
    config.data.dev = options.data;
  }
  if (!options.residual_attention.empty()) {
    WarnOfOtherResidual(config.residual_attention, options);
    config.residual_attention = options.residual_attention;
    config.model.residual_attention = options.residual_attention;
  }
  config.train.device = options.device;
  config.train.threads = options.threads.value_or(config.train.threads);
  config.train.evaluation_batch_size =
      options.batch_size.value_or(config.train.evaluation_batch_size);
  return config;
}

}  // namespace

absl::StatusOr<CheckpointRun> RunCheckpoint(
    const CheckpointRunOptions& options) {
  CheckpointRun run;
  ETC_ASSIGN_OR_RETURN(const FoundCheckpoint checkpoint,
                       FindCheckpoint(options.checkpoint));
  if (!checkpoint.reason.empty()) {
    options.reporter->Message(absl::StrCat("checkpoint: ", checkpoint.directory,
                                           ", ", checkpoint.reason));
  }
  ETC_ASSIGN_OR_RETURN(run.config, ConfigOfRun(checkpoint.directory, options));
  ETC_RETURN_IF_ERROR(CheckSameStart(run.config, {.group = options.group}));
  ETC_ASSIGN_OR_RETURN(run.setup, SetUpTask(run.config));
  if (run.config.data.dev.empty() && !run.setup.task->holds_out()) {
    return absl::InvalidArgumentError(
        absl::StrCat(checkpoint.directory,
                     ": its configuration names no dev files; give some with "
                     "--data"));
  }
  for (const std::string& warning : run.setup.warnings) {
    options.warn(warning);
  }
  ETC_ASSIGN_OR_RETURN(const RunDevice device,
                       DeviceOfRun(run.config, CudaDevicesOf(options.group),
                                   /*field=*/"--device"));
  const CurrentDevice current(device.device);
  ETC_RETURN_IF_ERROR(SetThreads(run.config.train.threads).status());
  ETC_ASSIGN_OR_RETURN(
      TaskModel model,
      NamingOutOfMemory(
          [&] { return absl::StrCat("loading ", checkpoint.directory); },
          [&] {
            return LoadTaskModel(checkpoint.directory, run.config,
                                 *run.setup.task, device.device);
          }));
  options.reporter->Message(device.message);
  EvaluateOptions evaluate = EvaluateOptionsFromConfig(run.config);
  evaluate.reporter = options.reporter;
  evaluate.stop = options.stop;
  evaluate.group = options.group;
  ETC_ASSIGN_OR_RETURN(
      const std::unique_ptr<ExampleSource> records,
      OpenRecords(run.config.data.dev, *run.setup.task,
                  {.reporter = options.reporter,
                   .stop = evaluate.stop,
                   .group = options.group,
                   .max_record_bytes = MaxRecordBytesOf(run.config.data)}));
  ETC_ASSIGN_OR_RETURN(run.evaluation,
                       Evaluate(&model, *run.setup.task, *records, evaluate));
  if (run.evaluation.skipped.count > 0) {
    options.warn(absl::StrCat(
        "skipped ", Counted(run.evaluation.skipped.count, "bad record"),
        run.evaluation.skipped.count == 1 ? ": " : ", the first: ",
        run.evaluation.skipped.first_message));
  }
  return run;
}

}  // namespace etc
