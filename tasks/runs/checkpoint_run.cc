#include "tasks/runs/checkpoint_run.h"

#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file_operations.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "base/threads.h"
#include "etc/weights/pretraining_parameters.h"
#include "nlohmann/json.hpp"
#include "tasks/config/config_fields.h"
#include "tasks/config/grid.h"
#include "tasks/config/run_files.h"
#include "tasks/config/run_settings.h"
#include "tasks/data/data_files.h"
#include "tasks/data/record_check.h"
#include "tasks/data/record_gate.h"
#include "tasks/distributed/process_group.h"
#include "tasks/output/find_checkpoint.h"
#include "tasks/registry.h"
#include "tasks/task/task.h"
#include "tasks/train/device.h"
#include "tasks/train/model_files.h"
#include "tasks/train/model_task.h"
#include "tasks/train/open_data.h"
#include "tasks/train/run_plan.h"
#include "tasks/train/shared_start.h"
#include "tasks/train/task_model.h"
#include "tasks/train/training_state.h"

namespace etc {
namespace {

// Applies `overrides`, of fields that say how files are read, examples cut or
// answers decoded.
absl::Status SetOptions(const std::vector<std::string>& overrides,
                        RunConfig* config) {
  if (overrides.empty()) {
    return absl::OkStatus();
  }
  ETC_ASSIGN_OR_RETURN(const TaskEntry* entry, FindTask(config->task));
  std::vector<std::string> fields = entry->reading_options;
  absl::c_copy(entry->decoding_options, std::back_inserter(fields));
  absl::c_copy(FieldsWithRule<DataConfig>(ConfigTable<DataConfig>::kObject,
                                          &FieldRule::reads_files),
               std::back_inserter(fields));
  nlohmann::json json = {
      {"data", config->json.value("data", nlohmann::json::object())},
      {config->task, config->task_options}};
  for (const std::string& text : overrides) {
    if (absl::c_none_of(fields, [&text](const std::string& field) {
          return absl::StartsWith(text, absl::StrCat(field, "="));
        })) {
      return absl::InvalidArgumentError(
          absl::StrCat("--set ", text, " should set one of the fields that ",
                       "say how the data of ", config->task, " are read ",
                       "or answers decoded: ", absl::StrJoin(fields, ", ")));
    }
    ETC_RETURN_IF_ERROR(ApplyOverride(text, &json, TypesOfFields()));
  }
  absl::StrAppend(&config->source, " with --set");
  ETC_ASSIGN_OR_RETURN(ScoringConfig reading,
                       ReadScoringConfig(json, config->source, config->task));
  // Takes no other field: data.sentences, for one, is the folder beside the
  // checkpoint.
  ForEachField(config->data, [&](const auto& field, auto& value) {
    if (field.rule.reads_files) {
      value = reading.data.*field.member;
    }
  });
  config->task_options = std::move(reading.task_options);
  config->json.update(json);  // for tasks that refuse fields of "data"
  return absl::OkStatus();
}

// The configuration with which the checkpoint is run.
absl::StatusOr<RunConfig> ConfigOfRun(const OpenedCheckpoint& checkpoint,
                                      const CheckpointRunOptions& options) {
  ETC_ASSIGN_OR_RETURN(RunConfig config,
                       ReadTaskModelConfig(checkpoint.directory));
  if (!options.task.empty() && options.task != config.task) {
    return InvalidArgument(
        checkpoint.name, " is of ", config.task, ", but ",
        options.task_option.empty()
            ? absl::StrCat("should be of ", options.task)
            : absl::StrCat(options.task_option, " is for ", options.task));
  }
  if (options.predicts && config.task == kTranslationTask) {
    return InvalidArgument(checkpoint.name,
                           " is of translation: `realetc translate` runs it");
  }
  if (options.predicts && config.task == kPretrainingTask) {
    return InvalidArgument(checkpoint.name,
                           " is of pre-training, which predicts nothing that "
                           "has a file: `realetc evaluate` scores it");
  }
  ETC_RETURN_IF_ERROR(SetOptions(options.overrides, &config));
  if (!options.data.empty()) {
    if (config.data.dev.empty()) {
      config.data.train = options.data;  // of which records may be held out
    }
    config.data.dev = options.data;
  }
  ETC_RETURN_IF_ERROR(ApplyResidual(checkpoint.directory,
                                    options.residual_attention, options.context,
                                    &config));
  config.train.device = options.device;
  config.train.threads = options.threads.value_or(config.train.threads);
  config.train.evaluation_batch_size =
      options.batch_size.value_or(config.train.evaluation_batch_size);
  return config;
}

}  // namespace

absl::StatusOr<OpenedCheckpoint> OpenCheckpoint(
    const CheckpointRunOptions& options) {
  OpenedCheckpoint opened;
  ETC_ASSIGN_OR_RETURN(const FoundCheckpoint found,
                       FindCheckpoint(options.checkpoint));
  opened.name = found.directory;
  if (!found.reason.empty()) {
    options.context.Message(
        absl::StrCat("checkpoint: ", opened.name, ", ", found.reason));
  }
  std::error_code error;
  opened.directory = std::filesystem::canonical(opened.name, error).string();
  if (error) {
    return ErrnoStatus(error.value(), "look up", opened.name);
  }
  ETC_ASSIGN_OR_RETURN(opened.config, ConfigOfRun(opened, options));
  ETC_ASSIGN_OR_RETURN(opened.setup, SetUpTask(opened.config));
  for (const std::string& warning : opened.setup.warnings) {
    options.context.Warn(warning);
  }
  ETC_ASSIGN_OR_RETURN(opened.device,
                       DeviceOfRun(DeviceSettingsOf(opened.config),
                                   CudaDevicesOf(options.context.group),
                                   /*field=*/"--device"));
  return opened;
}

absl::Status CheckIsEncoder(const OpenedCheckpoint& checkpoint,
                            absl::string_view command) {
  return checkpoint.config.encoder_decoder.has_value()
             ? InvalidArgument(checkpoint.name, " is of ",
                               checkpoint.config.task, ": ", command,
                               " looks at encoders only")
             : absl::OkStatus();
}

namespace {

void TellDevice(const RunDevice& device, const RunContext& context) {
  context.Message(device.message);
  context.Warn(device.warning);
}

// Loads the model of any task, with a message about memory that runs out.
absl::StatusOr<std::unique_ptr<TrainableModel>> LoadAnyModel(
    const OpenedCheckpoint& checkpoint, const RunContext& context) {
  const ModelTask* const task = AsModelTask(*checkpoint.setup.task);
  if (task == nullptr) {
    ETC_ASSIGN_OR_RETURN(TaskModel model, LoadModelOfRun(checkpoint, context));
    return std::make_unique<TaskModel>(std::move(model));
  }
  ETC_ASSIGN_OR_RETURN(
      std::unique_ptr<TrainableModel> model,
      NamingOutOfMemory(
          [&] { return absl::StrCat("loading ", checkpoint.name); },
          [&] {
            return task->LoadModel(checkpoint.directory, checkpoint.config,
                                   checkpoint.device.device);
          }));
  TellDevice(checkpoint.device, context);
  return model;
}

}  // namespace

absl::StatusOr<TaskModel> LoadModelOfRun(const OpenedCheckpoint& checkpoint,
                                         const RunContext& context) {
  ETC_ASSIGN_OR_RETURN(const EncoderTask* const task,
                       EncoderTaskOf(*checkpoint.setup.task,
                                     absl::StrCat(checkpoint.name, " is of ",
                                                  checkpoint.config.task)));
  ETC_ASSIGN_OR_RETURN(
      TaskModel model,
      NamingOutOfMemory(
          [&] { return absl::StrCat("loading ", checkpoint.name); },
          [&] {
            return LoadTaskModel(checkpoint.directory, checkpoint.config, *task,
                                 checkpoint.device.device);
          }));
  TellDevice(checkpoint.device, context);
  return model;
}

namespace {

// Returns the files that a run of the checkpoint reads, and the prefixes of
// those that it writes beside its predictions.
absl::StatusOr<CheckpointRunFiles> FilesOf(const OpenedCheckpoint& run) {
  CheckpointRunFiles files = {.read = FilesOfCheckpoint(run.directory)};
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
absl::Status CheckFiles(const OpenedCheckpoint& run,
                        const CheckpointRunOptions& options) {
  absl::Status status;
  if (options.check != nullptr && options.context.is_first()) {
    const absl::StatusOr<CheckpointRunFiles> files = FilesOf(run);
    status = files.ok() ? options.check(*files) : files.status();
  }
  return options.context.Agree(status);
}

// Returns true if `options.data` are, by their contents, the files of
// data.train of a run that had no data.dev.
absl::StatusOr<bool> HasTrainingFiles(const OpenedCheckpoint& run,
                                      const CheckpointRunOptions& options) {
  const nlohmann::json::json_pointer train("/data/train");
  const nlohmann::json::json_pointer dev("/data/dev");
  const absl::StatusOr<nlohmann::json> then =
      ReadCheckpointSettings(run.directory);
  const absl::Status read = options.context.Agree(then.status());
  if (absl::IsNotFound(read)) {
    return false;  // the checkpoint has no training state
  }
  ETC_RETURN_IF_ERROR(read);
  ETC_ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                       FindDataFiles(options.data));
  if (!then->contains(train) || then->at(train).size() != paths.size() ||
      !then->contains(dev) || !then->at(dev).empty()) {
    return false;
  }
  RunConfig now;
  now.data.train = paths;
  ETC_ASSIGN_OR_RETURN(const RunFiles files,
                       FindRunFiles(now, OpeningListener(options.context),
                                    DataGroupOf(options.context.group)));
  return absl::c_is_permutation(
      WithoutPaths(*then)[train],
      WithoutPaths(RunSettings(now, {.files = files}))[train]);
}

absl::StatusOr<std::unique_ptr<ExampleSource>> OpenData(
    const OpenedCheckpoint& run, const CheckpointRunOptions& options) {
  const DataConfig& data = run.config.data;
  DataRequest request = {
      .use = options.predicts ? RecordUse::kPrediction : RecordUse::kEvaluation,
      .limits = RecordLimitsOf(data)};
  const bool may_hold_out = !options.data.empty() && !options.predicts;
  // Other data than those of the training are another number of records, or are
  // read in another way.
  if (may_hold_out && !data.dev_records.empty()) {
    auto held_out = OpenRecords(*run.setup.task, request, options.context);
    if (held_out.ok()) {
      options.context.Message(absl::StrCat(
          "--data has the training data of the run: only the records that it "
          "held out of them (data.dev_fraction) are evaluated, ",
          data.dev_records));
      return held_out;
    }
    if (!absl::IsFailedPrecondition(held_out.status()) &&
        !absl::IsInvalidArgument(held_out.status())) {
      return held_out;
    }
  } else if (may_hold_out && run.setup.task->holds_out()) {
    ETC_ASSIGN_OR_RETURN(const bool is_training,
                         HasTrainingFiles(run, options));
    if (is_training) {
      options.context.Message(
          "--data has the training data of the run: only the documents that it "
          "held out of them (pretrain.development_one_in) are evaluated");
      return OpenRecords(*run.setup.task, request, options.context);
    }
  }
  request.patterns = data.dev;
  auto records = OpenRecords(*run.setup.task, request, options.context);
  return absl::IsNotFound(records.status()) && options.data.empty()
             ? absl::NotFoundError(
                   absl::StrCat(records.status().message(),
                                " (give its new place with --data)"))
             : std::move(records);
}

absl::Status NoAnswers() {
  return absl::FailedPreconditionError(
      "the data have no answers, so there is nothing to score; see realetc "
      "predict");
}

// Opens the records, and checks all of them before the model is loaded: a
// mistake in the last one would come after all others had been run.
absl::StatusOr<std::unique_ptr<ExampleSource>> OpenCheckedRecords(
    const OpenedCheckpoint& run, const CheckpointRunOptions& options) {
  ETC_ASSIGN_OR_RETURN(std::unique_ptr<ExampleSource> records,
                       OpenData(run, options));
  ETC_ASSIGN_OR_RETURN(
      const RecordCounts counts,
      CheckEvaluationRecords(
          run.config.data, *records, options.context,
          options.predicts ? RecordUse::kPrediction : RecordUse::kEvaluation));
  if (options.needs_scores && counts.have_no_answers()) {
    return NoAnswers();
  }
  return records;
}

// Checks that all ranks have the same weights and data, by their contents: each
// has found them for itself, and `best` of a run that still trains moves on.
absl::Status CheckSameFiles(const OpenedCheckpoint& run,
                            const RunContext& context) {
  if (context.group == nullptr) {
    return absl::OkStatus();
  }
  RunConfig named;
  named.init = run.directory;
  named.tokenizer = run.config.tokenizer;
  named.data = run.config.data;
  if (!named.data.dev.empty()) {
    named.data.train.clear();  // else their held-out records are the data
  }
  ETC_ASSIGN_OR_RETURN(const RunFiles files,
                       FindRunFiles(named, OpeningListener(context),
                                    DataGroupOf(context.group)));
  nlohmann::json settings = RunSettings(named, {.files = files});
  settings["weights"] = std::move(settings["init"]);
  settings.erase("init");
  return CheckSharedSettings(settings, context.group);
}

// Evaluates the model; where memory runs out, says how less would do.
absl::StatusOr<Evaluation> EvaluateRecords(const OpenedCheckpoint& run,
                                           const CheckpointRunOptions& options,
                                           const ExampleSource& records,
                                           TrainableModel* model) {
  EvaluateOptions evaluate = EvaluateOptionsFromConfig(run.config);
  evaluate.context = options.context;
  evaluate.loader.predicts = options.predicts;
  absl::StatusOr<Evaluation> evaluation =
      Evaluate(model, *run.setup.task, records, evaluate);
  ETC_RETURN_IF_ERROR(
      WithBatchAdvice(evaluation.status(), evaluate.loader.batch_size));
  return evaluation;
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
  options.context.Warn(left_out);
  for (const std::string& warning : records.Warnings()) {
    options.context.Warn(warning);
  }
  const int64_t unanswered = evaluation.predictions->num_unanswered();
  if (!options.predicts && unanswered > 0 && !evaluation.metrics.empty()) {
    options.context.Warn(UnansweredText(unanswered));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CheckpointRun> RunCheckpoint(
    const CheckpointRunOptions& options) {
  ETC_ASSIGN_OR_RETURN(OpenedCheckpoint opened, OpenCheckpoint(options));
  const RunConfig& config = opened.config;
  ETC_RETURN_IF_ERROR(CheckSameStart(config, {.context = options.context}));
  if (config.data.dev.empty() && !opened.setup.task->holds_out()) {
    return InvalidArgument(
        opened.name,
        ": its configuration names no dev files; give some with --data");
  }
  ETC_RETURN_IF_ERROR(CheckFiles(opened, options));
  const CurrentDevice current(opened.device.device);
  const std::string threads = ThreadsField(options.threads);
  ETC_RETURN_IF_ERROR(SetThreads(config.train.threads, threads).status());
  options.context.Warn(ThreadsWarning(config.train.threads, threads));
  ETC_ASSIGN_OR_RETURN(const std::unique_ptr<ExampleSource> records,
                       OpenCheckedRecords(opened, options));
  ETC_RETURN_IF_ERROR(CheckSameFiles(opened, options.context));
  ETC_ASSIGN_OR_RETURN(const std::unique_ptr<TrainableModel> model,
                       LoadAnyModel(opened, options.context));
  ETC_ASSIGN_OR_RETURN(Evaluation evaluation,
                       EvaluateRecords(opened, options, *records, model.get()));
  if (options.context.is_first()) {
    ETC_RETURN_IF_ERROR(ReportLeftOut(*records, evaluation, options));
  }
  if (options.needs_scores && evaluation.metrics.empty()) {
    return NoAnswers();
  }
  return CheckpointRun{.checkpoint = std::move(opened),
                       .evaluation = std::move(evaluation)};
}

}  // namespace etc
