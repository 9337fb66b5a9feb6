#include "tasks/runs/checkpoint_run.h"

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/file_operations.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "etc/residual_choice.h"
#include "etc/weights/checkpoint.h"
#include "etc/weights/gates.h"
#include "etc/weights/pretraining_parameters.h"
#include "tasks/data/data_files.h"
#include "tasks/data/record_gate.h"
#include "tasks/output/find_checkpoint.h"
#include "tasks/task/task.h"
#include "tasks/train/device.h"
#include "tasks/train/finetune.h"
#include "tasks/train/model_files.h"
#include "tasks/train/model_task.h"
#include "tasks/train/open_data.h"
#include "tasks/train/run_plan.h"
#include "tasks/train/shared_start.h"
#include "tasks/train/task_model.h"

namespace etc {
namespace {

// The gates of a checkpoint, if one of the modes asks for them.
absl::StatusOr<NamedTensors> GatesFor(const EtcConfig& trained,
                                      const EtcConfig& now,
                                      const std::string& directory) {
  if (trained.residual_attention != "gate" &&
      now.residual_attention != "gate") {
    return NamedTensors();
  }
  ETC_ASSIGN_OR_RETURN(const TensorReader reader,
                       TensorReader::Open(directory));
  return ReadGates(reader);
}

// Sets the mode that the options name, and warns if it is none that computes
// what the model was trained with: one that was trained with scores needs them,
// and the other way round.
absl::Status SetResidual(const std::string& directory,
                         const CheckpointRunOptions& options,
                         FinetuneConfig* config) {
  const EtcConfig trained = config->model;
  EtcConfig& now = config->model;
  ETC_RETURN_IF_ERROR(
      ApplyResidualChoice(options.residual_attention, directory, &now));
  config->residual_attention = now.residual_attention;
  ETC_ASSIGN_OR_RETURN(const NamedTensors gates,
                       GatesFor(trained, now, directory));
  if (now.residual_gate_init != trained.residual_gate_init && !gates.empty()) {
    options.warn(absl::StrCat(
        "residual attention: ", options.residual_attention,
        " sets gates of models that have none; this one keeps its own"));
  }
  if (ComputedMode(trained, gates) != ComputedMode(now, gates)) {
    const std::string before = ResidualText(trained);
    options.warn(absl::StrCat(
        "residual attention: trained with ", before, ", now ",
        ResidualText(now), "; the model has learnt with the scores of ", before,
        ", so expect worse results: to compare the two, fine-tune with each"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FinetuneConfig> ConfigOfRun(
    const std::string& directory, const CheckpointRunOptions& options) {
  ETC_ASSIGN_OR_RETURN(FinetuneConfig config, ReadTaskModelConfig(directory));
  if (options.predicts && config.task == kTranslationTask) {
    return absl::InvalidArgumentError(absl::StrCat(
        directory, " is of translation: `realetc translate` runs it"));
  }
  if (options.predicts && config.task == kPretrainingTask) {
    return absl::InvalidArgumentError(
        absl::StrCat(directory,
                     " is of pre-training, which predicts nothing that has a "
                     "file: `realetc evaluate` scores it"));
  }
  if (!options.data.empty()) {
    config.data.dev = options.data;
  }
  if (!options.residual_attention.empty() && config.task == kTranslationTask) {
    return absl::InvalidArgumentError(
        "--residual is for encoders; a translation model has scores on three "
        "paths, as it was trained");
  }
  if (!options.residual_attention.empty()) {
    ETC_RETURN_IF_ERROR(SetResidual(directory, options, &config));
  }
  config.train.device = options.device;
  config.train.threads = options.threads.value_or(config.train.threads);
  config.train.evaluation_batch_size =
      options.batch_size.value_or(config.train.evaluation_batch_size);
  return config;
}

namespace {

// Loads the model of any task, with a message about memory that runs out.
absl::StatusOr<std::unique_ptr<TrainableModel>> LoadAnyModel(
    const std::string& directory, const FinetuneConfig& config,
    const Task& task, const torch::Device& device) {
  if (const ModelTask* const model_task = AsModelTask(task)) {
    return NamingOutOfMemory(
        [&] { return absl::StrCat("loading ", directory); },
        [&] { return model_task->LoadModel(directory, config, device); });
  }
  ETC_ASSIGN_OR_RETURN(TaskModel model,
                       LoadModelOfRun(directory, config, task, device));
  return std::make_unique<TaskModel>(std::move(model));
}

}  // namespace

absl::StatusOr<TaskModel> LoadModelOfRun(const std::string& directory,
                                         const FinetuneConfig& config,
                                         const Task& task,
                                         const torch::Device& device) {
  if (AsModelTask(task) != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(directory, " is of ", config.task,
                     ", whose model is no encoder with layers of a task"));
  }
  return NamingOutOfMemory(
      [&] { return absl::StrCat("loading ", directory); },
      [&] { return LoadTaskModel(directory, config, task, device); });
}

namespace {

// All files below a directory.
void AddFilesBelow(const std::string& directory,
                   std::vector<std::string>* files) {
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator entry(directory, error),
       end;
       !error && entry != end; entry.increment(error)) {
    files->push_back(entry->path().string());
  }
}

// The files of the checkpoint in `directory`, and of the run that it is of.
void AddCheckpoint(const std::filesystem::path& directory,
                   std::vector<std::string>* files) {
  AddFilesBelow(directory.string(), files);
  const std::filesystem::path checkpoints = directory.parent_path();
  if (checkpoints.filename() != "checkpoints") {
    return;
  }
  AddFilesBelow(checkpoints.string(), files);
  const std::filesystem::path seed = checkpoints.parent_path();
  const std::filesystem::path run = seed.parent_path();
  for (const std::filesystem::path& above : {seed, run, run.parent_path()}) {
    for (const char* name :
         {"metrics.jsonl", "checkpoints.json", "summary.json", "grid.json"}) {
      files->push_back((above / name).string());
    }
  }
}

// Returns the files that a run of the checkpoint in `directory` reads, and the
// prefixes of those that it writes beside its predictions.
absl::StatusOr<CheckpointRunFiles> FilesOf(const std::string& directory,
                                           const CheckpointRun& run) {
  CheckpointRunFiles files;
  AddCheckpoint(directory, &files.read);
  if (!run.config.data.dev.empty()) {
    ETC_ASSIGN_OR_RETURN(const std::vector<std::string> data,
                         FindDataFiles(run.config.data.dev));
    files.read.insert(files.read.end(), data.begin(), data.end());
  }
  files.read.push_back(run.config.tokenizer.vocabulary);
  for (const PredictionFile& file :
       run.setup.task->MakePredictions()->MoreFiles()) {
    files.prefixes.push_back(file.prefix);
  }
  return files;
}

// Checks on rank 0, and returns the result on all ranks.
absl::Status CheckFiles(const std::string& directory, const CheckpointRun& run,
                        const CheckpointRunOptions& options) {
  absl::Status status;
  if (options.check != nullptr && options.context.is_first()) {
    const absl::StatusOr<CheckpointRunFiles> files = FilesOf(directory, run);
    status = files.ok() ? options.check(*files) : files.status();
  }
  return options.context.Agree(status);
}

// Opens the records, and checks those that are in memory before the model is
// loaded: a mistake in the last one would come after all others had been run.
absl::StatusOr<std::unique_ptr<ExampleSource>> OpenCheckedRecords(
    const CheckpointRun& run, const CheckpointRunOptions& options) {
  ETC_ASSIGN_OR_RETURN(
      std::unique_ptr<ExampleSource> records,
      OpenRecords(*run.setup.task,
                  {.patterns = run.config.data.dev,
                   .use = options.predicts ? RecordUse::kPrediction
                                           : RecordUse::kEvaluation,
                   .limits = RecordLimitsOf(run.config.data)},
                  options.context));
  ETC_RETURN_IF_ERROR(
      options.context.Agree(CheckEvaluationRecords(run.config.data, *records)));
  return records;
}

// Reports records that were left out, when `records` were opened or later; if
// these are all, it is an error.
absl::Status ReportLeftOut(const ExampleSource& records,
                           const Evaluation& evaluation,
                           const CheckpointRunOptions& options) {
  const std::string left_out = evaluation.skipped.count > 0
                                   ? SkippedText(evaluation.skipped)
                                   : records.LeftOut();
  if (evaluation.num_examples == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "there is nothing to ", options.predicts ? "predict" : "evaluate", ": ",
        left_out.empty() ? "the data have no records" : left_out));
  }
  if (!left_out.empty()) {
    options.warn(left_out);
  }
  const int64_t unanswered = evaluation.predictions->num_unanswered();
  if (!options.predicts && unanswered > 0 && !evaluation.metrics.empty()) {
    options.warn(absl::StrCat(
        Counted(unanswered, "record"), " without an answer ",
        unanswered == 1 ? "is" : "are", " left out of the scores"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CheckpointRun> RunCheckpoint(
    const CheckpointRunOptions& options) {
  CheckpointRun run;
  ETC_ASSIGN_OR_RETURN(const FoundCheckpoint checkpoint,
                       FindCheckpoint(options.checkpoint));
  if (!checkpoint.reason.empty()) {
    options.context.Message(absl::StrCat("checkpoint: ", checkpoint.directory,
                                         ", ", checkpoint.reason));
  }
  std::error_code error;
  run.directory =
      std::filesystem::canonical(checkpoint.directory, error).string();
  if (error) {
    return ErrnoStatus(error.value(), "look up", checkpoint.directory);
  }
  ETC_ASSIGN_OR_RETURN(run.config, ConfigOfRun(checkpoint.directory, options));
  ETC_RETURN_IF_ERROR(CheckSameStart(run.config, {.context = options.context}));
  ETC_ASSIGN_OR_RETURN(run.setup, SetUpTask(run.config));
  if (run.config.data.dev.empty() && !run.setup.task->holds_out()) {
    return absl::InvalidArgumentError(
        absl::StrCat(checkpoint.directory,
                     ": its configuration names no dev files; give some with "
                     "--data"));
  }
  ETC_RETURN_IF_ERROR(CheckFiles(run.directory, run, options));
  for (const std::string& warning : run.setup.warnings) {
    options.warn(warning);
  }
  ETC_ASSIGN_OR_RETURN(
      const RunDevice device,
      DeviceOfRun(run.config, CudaDevicesOf(options.context.group),
                  /*field=*/"--device"));
  const CurrentDevice current(device.device);
  ETC_RETURN_IF_ERROR(
      SetThreads(run.config.train.threads,
                 options.threads.has_value() ? "--threads" : "train.threads")
          .status());
  ETC_ASSIGN_OR_RETURN(const std::unique_ptr<ExampleSource> records,
                       OpenCheckedRecords(run, options));
  ETC_ASSIGN_OR_RETURN(
      const std::unique_ptr<TrainableModel> model,
      LoadAnyModel(run.directory, run.config, *run.setup.task, device.device));
  options.context.Message(device.message);
  EvaluateOptions evaluate = EvaluateOptionsFromConfig(run.config);
  evaluate.context = options.context;
  evaluate.loader.predicts = options.predicts;
  ETC_ASSIGN_OR_RETURN(run.evaluation, Evaluate(model.get(), *run.setup.task,
                                                *records, evaluate));
  if (options.context.is_first()) {
    ETC_RETURN_IF_ERROR(ReportLeftOut(*records, run.evaluation, options));
  }
  return run;
}

}  // namespace etc
