#include "tasks/train/trainer.h"

#include <torch/utils.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/out_of_memory.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "etc/weights/checkpoint.h"
#include "etc/weights/source_files.h"
#include "tasks/data/loader.h"
#include "tasks/text/punkt_tables.h"
#include "tasks/text/sentence_splitter.h"
#include "tasks/train/checkpoint_store.h"
#include "tasks/train/evaluate.h"
#include "tasks/train/metrics_log.h"
#include "tasks/train/optimizer.h"
#include "tasks/train/run_lock.h"
#include "tasks/train/run_plan.h"
#include "tasks/train/run_report.h"
#include "tasks/train/run_settings.h"
#include "tasks/train/task_model.h"
#include "tasks/train/train_step.h"
#include "tasks/train/training_state.h"

namespace etc {
namespace {

// The file of a checkpoint that says what its evaluation said.
constexpr char kEvaluation[] = "/evaluation.json";

// One run, from its first update or from a checkpoint to its end or a stop.
class Trainer {
 public:
  static absl::StatusOr<std::unique_ptr<Trainer>> Start(
      const RunOptions& options);

  absl::StatusOr<RunResult> Run();

 private:
  Trainer(const RunOptions& options, RunLock lock)
      : options_(options),
        config_(options.config),
        num_steps_(NumStepsOf(config_, options.train.size())),
        lock_(std::move(lock)),
        store_(options.directory + "/checkpoints") {}

  absl::Status MakeModel();
  absl::Status StartFresh();
  absl::Status StartFrom(const std::string& checkpoint);
  // The files that each checkpoint has a copy of.
  absl::Status ReadTextFiles();
  // From here on the run's directory is changed.
  absl::Status TakeOverDirectory();

  nlohmann::json Settings() const {
    return RunSettings(config_, {.seed = options_.seed,
                                 .num_records = options_.train.size(),
                                 .files = options_.files});
  }
  bool EvaluationIsDue() const;
  bool SaveIsDue() const;
  // Makes one update and reports it. False if the run was stopped before.
  absl::StatusOr<bool> MakeUpdate();
  // `status`, if it says that the model has diverged, with the checkpoint to go
  // back to.
  absl::Status WithLastGood(const absl::Status& status) const;
  absl::Status EvaluateNow();
  // Adds what an evaluation says to the last checkpoint.
  absl::Status AddEvaluation(const std::string& predictions, bool is_best);
  absl::Status WriteFiles(const std::string& directory) const;
  absl::Status Save();
  RunResult Result(bool finished) const;

  const RunOptions options_;
  const FinetuneConfig& config_;
  const int64_t num_steps_;
  const RunLock lock_;
  CheckpointStore store_;
  std::string vocabulary_;
  std::optional<PunktFiles> punkt_;

  TaskModel model_;
  std::unique_ptr<TrainStep> train_step_;
  TrainingState state_;
  std::unique_ptr<TrainingLoader> loader_;
  std::unique_ptr<RunReport> report_;

  std::optional<int64_t> saved_step_;
  // Some of the last batch: what the weights are tried on before they are
  // saved.
  Examples trial_;
};

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Start(
    const RunOptions& options) {
  ETC_RETURN_IF_ERROR(CreateDirectories(options.directory));
  ETC_ASSIGN_OR_RETURN(RunLock lock, RunLock::Take(options.directory));
  // The constructor is private: make_unique cannot see it.
  std::unique_ptr<Trainer> trainer(new Trainer(options, std::move(lock)));
  const std::optional<std::string> last = trainer->store_.last();
  if (last.has_value() && !options.resume) {
    return absl::AlreadyExistsError(
        absl::StrCat(options.directory,
                     " has a run already: resume it, or choose another output "
                     "directory"));
  }
  ETC_RETURN_IF_ERROR(trainer->lock_.WriteHolder());
  if (trainer->num_steps_ < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "train.epochs (", options.config.train.epochs,
        ") come to no update: the training data have ",
        Counted(options.train.size(), "record"), " and train.batch_size is ",
        options.config.train.batch_size));
  }
  ETC_RETURN_IF_ERROR(trainer->ReadTextFiles());
  ETC_RETURN_IF_ERROR(trainer->MakeModel());
  ETC_RETURN_IF_ERROR(last.has_value() ? trainer->StartFrom(*last)
                                       : trainer->StartFresh());
  ETC_RETURN_IF_ERROR(trainer->TakeOverDirectory());
  TrainingLoaderOptions loader = LoaderOptionsOf(options.config, options.seed);
  loader.stop = options.stop;
  trainer->loader_ = std::make_unique<TrainingLoader>(&options.train, loader,
                                                      trainer->state_.position);
  return trainer;
}

absl::Status Trainer::MakeModel() {
  torch::manual_seed(CombineSeeds({static_cast<uint64_t>(options_.seed)}));
  model_ = MakeTaskModel(config_, options_.task);
  ETC_ASSIGN_OR_RETURN(auto optimizer,
                       MakeOptimizer(config_.optimizer, model_.Parameters()));
  train_step_ = std::make_unique<TrainStep>(
      model_, std::move(optimizer),
      TrainStep::Options{.batch_size = config_.train.batch_size,
                         .clip_norm = config_.optimizer.clip_norm,
                         .schedule = ScheduleOf(config_, num_steps_),
                         .seed = options_.seed});
  return absl::OkStatus();
}

absl::Status Trainer::TakeOverDirectory() {
  ETC_RETURN_IF_ERROR(RemoveAbandonedTemporaries(options_.directory));
  ETC_RETURN_IF_ERROR(store_.TakeOver());
  // A run that died before it made the link.
  if (state_.best_step == state_.step && state_.step > 0) {
    ETC_RETURN_IF_ERROR(store_.MarkLastAsBest());
  }
  ETC_ASSIGN_OR_RETURN(MetricsLog log,
                       MetricsLog::Open(options_.directory + "/metrics.jsonl",
                                        state_.metrics_bytes));
  report_ = std::make_unique<RunReport>(options_, num_steps_, std::move(log));
  return absl::OkStatus();
}

absl::Status Trainer::ReadTextFiles() {
  const std::string& path = config_.tokenizer.vocabulary;
  if (!path.empty()) {
    ETC_ASSIGN_OR_RETURN(vocabulary_, etc::ReadVocabulary(path));
  }
  if (config_.data.sentences != kIcuSentences) {
    ETC_ASSIGN_OR_RETURN(punkt_, ReadPunktFiles(config_.data.sentences));
  }
  return absl::OkStatus();
}

absl::Status Trainer::StartFresh() {
  if (config_.init.empty()) {
    options_.reporter->Message("encoder and head: random weights");
    return absl::OkStatus();
  }
  ETC_ASSIGN_OR_RETURN(const std::vector<std::string> messages,
                       LoadInitialWeights(config_, model_));
  for (const std::string& message : messages) {
    options_.reporter->Message(message);
  }
  return absl::OkStatus();
}

absl::Status Trainer::StartFrom(const std::string& checkpoint) {
  ETC_ASSIGN_OR_RETURN(
      TrainingStateFile saved,
      ReadTrainingState(checkpoint + "/training_state.safetensors"));
  ETC_ASSIGN_OR_RETURN(
      const std::vector<SettingChange> changes,
      CheckSameSettings(saved.settings, Settings(), options_.allow_changes));
  ETC_RETURN_IF_ERROR(LoadTaskModelWeights(checkpoint, config_, model_));
  ETC_RETURN_IF_ERROR(CheckFinite(checkpoint, saved.optimizer));
  ETC_RETURN_IF_ERROR(train_step_->optimizer().LoadState(saved.optimizer));
  ETC_ASSIGN_OR_RETURN(const std::optional<TrainingState> evaluated,
                       ReadStateAfterEvaluation(checkpoint + kEvaluation));
  state_ = evaluated.value_or(std::move(saved.state));
  saved_step_ = state_.step;
  ETC_ASSIGN_OR_RETURN(const std::vector<std::string> messages,
                       GoOnWithChanges(changes, config_, num_steps_, &state_));
  for (const std::string& message : messages) {
    options_.reporter->Message(message);
  }
  options_.reporter->Message(absl::StrCat("resumed from ", checkpoint,
                                          ", after ", state_.step, " of ",
                                          Counted(num_steps_, "update")));
  return absl::OkStatus();
}

bool Trainer::EvaluationIsDue() const {
  if (options_.dev == nullptr || state_.evaluated_step == state_.step) {
    return false;
  }
  const int64_t interval = EvaluationIntervalOf(config_, options_.train.size());
  return state_.step == num_steps_ ||
         (interval > 0 && state_.step % interval == 0);
}

bool Trainer::SaveIsDue() const {
  return saved_step_ != state_.step &&
         (state_.step == num_steps_ ||
          (config_.train.checkpoint_every > 0 && state_.step > 0 &&
           state_.step % config_.train.checkpoint_every == 0));
}

absl::StatusOr<RunResult> Trainer::Run() {
  while (true) {
    const bool evaluation_is_due = EvaluationIsDue();
    // What an evaluation finds must not cost the updates before it.
    if (SaveIsDue() || (evaluation_is_due && saved_step_ != state_.step)) {
      ETC_RETURN_IF_ERROR(Save());
    }
    if (evaluation_is_due) {
      const absl::Status evaluated = EvaluateNow();
      if (absl::IsCancelled(evaluated)) {
        break;
      }
      ETC_RETURN_IF_ERROR(evaluated);
    }
    if (state_.step == num_steps_) {
      return Result(/*finished=*/true);
    }
    ETC_ASSIGN_OR_RETURN(const bool made, MakeUpdate());
    if (!made) {
      break;
    }
  }
  if (saved_step_ != state_.step) {
    // A large model takes a while to write.
    options_.reporter->Message("stopping: saving what was trained so far");
    ETC_RETURN_IF_ERROR(Save());
  }
  options_.reporter->Message(absl::StrCat("stopped after ", state_.step, " of ",
                                          Counted(num_steps_, "update"),
                                          "; saved in ", *store_.last()));
  return Result(/*finished=*/false);
}

absl::Status Trainer::WithLastGood(const absl::Status& status) const {
  if (!absl::IsAborted(status)) {
    return status;
  }
  const std::optional<std::string> last = store_.last();
  return absl::AbortedError(absl::StrCat(
      options_.directory, ": ", status.message(), "; ",
      last.has_value() ? absl::StrCat("the last good checkpoint is ", *last)
                       : "there is no checkpoint yet"));
}

absl::StatusOr<bool> Trainer::MakeUpdate() {
  const double begin = SteadySeconds();
  const double waited_before = loader_->seconds_waited();
  absl::StatusOr<TrainingBatch> next = loader_->Next();
  if (absl::IsCancelled(next.status())) {
    return false;
  }
  ETC_ASSIGN_OR_RETURN(const TrainingBatch batch, std::move(next));
  const double waited = loader_->seconds_waited() - waited_before;
  trial_ = batch.micro_batches.front();
  const absl::StatusOr<std::optional<TrainStepResult>> update =
      NamingOutOfMemory(
          [&] { return absl::StrCat("making update ", state_.step + 1); },
          [&] { return train_step_->Make(batch, state_.step, options_.stop); });
  ETC_RETURN_IF_ERROR(WithLastGood(update.status()));
  if (!update->has_value()) {
    return false;
  }
  ++state_.step;
  state_.position = batch.next;
  ETC_RETURN_IF_ERROR(report_->ReportUpdate(
      state_.step, **update,
      {.seconds = SteadySeconds() - begin, .seconds_waited = waited},
      loader_->skipped()));
  state_.metrics_bytes = report_->metrics_bytes();
  return true;
}

absl::Status Trainer::EvaluateNow() {
  EvaluateOptions evaluate = EvaluateOptionsFromConfig(config_);
  evaluate.reporter = options_.reporter;
  evaluate.stop = options_.stop;
  const absl::StatusOr<Evaluation> evaluated = NamingOutOfMemory(
      [&] {
        return absl::StrCat("evaluating ", evaluate.batch_size,
                            " examples at a time");
      },
      [&] { return Evaluate(model_, options_.task, *options_.dev, evaluate); });
  if (!evaluated.ok()) {
    return absl::Status(
        evaluated.status().code(),
        absl::StrCat(evaluated.status().message(), "; in the evaluation after ",
                     state_.step, " updates, which are saved in ",
                     *store_.last()));
  }
  const Evaluation& evaluation = *evaluated;
  state_.evaluated_step = state_.step;
  state_.evaluation = evaluation.metrics;
  const std::optional<double> now =
      MainMetric(evaluation.metrics, options_.task);
  const std::optional<double> best = MainMetric(state_.best, options_.task);
  const bool is_best = now.has_value() && (!best.has_value() || *now > *best);
  if (is_best) {
    state_.best_step = state_.step;
    state_.best = evaluation.metrics;
  }
  ETC_RETURN_IF_ERROR(report_->ReportEvaluation(state_, evaluation));
  state_.metrics_bytes = report_->metrics_bytes();
  return AddEvaluation(evaluation.predictions->FileContents(), is_best);
}

absl::Status Trainer::AddEvaluation(const std::string& predictions,
                                    bool is_best) {
  ETC_RETURN_IF_ERROR(report_->Sync());
  const std::string last = *store_.last();
  ETC_RETURN_IF_ERROR(
      WriteFileAtomically(last + "/predictions.json", predictions));
  // Only this makes the checkpoint one that was evaluated: a run that is killed
  // before it evaluates again.
  ETC_RETURN_IF_ERROR(WriteStateAfterEvaluation(state_, last + kEvaluation));
  return is_best ? store_.MarkLastAsBest() : absl::OkStatus();
}

absl::Status Trainer::WriteFiles(const std::string& directory) const {
  ETC_RETURN_IF_ERROR(
      WriteTaskModel({.config = config_,
                      .model = model_,
                      .vocabulary = vocabulary_,
                      .punkt = punkt_.has_value() ? &*punkt_ : nullptr},
                     directory));
  return WriteTrainingState({.state = state_,
                             .settings = Settings(),
                             .optimizer = train_step_->optimizer().State()},
                            directory + "/training_state.safetensors");
}

absl::Status Trainer::Save() {
  // The checkpoint before is kept until this one is known to be as good. There
  // is nothing to try a run on that is stopped before its first batch.
  if (!trial_.empty()) {
    ETC_RETURN_IF_ERROR(
        WithLastGood(train_step_->CheckLoss(trial_, state_.step)));
  }
  // The state counts on lines of metrics.
  ETC_RETURN_IF_ERROR(report_->Sync());
  ETC_RETURN_IF_ERROR(store_.Save(
      state_.step,
      [this](const std::string& directory) { return WriteFiles(directory); }));
  saved_step_ = state_.step;
  return absl::OkStatus();
}

RunResult Trainer::Result(bool finished) const {
  return {.finished = finished,
          .seed = options_.seed,
          .directory = options_.directory,
          .steps = state_.step,
          .last = state_.evaluation,
          .best_step = state_.best_step,
          .best = state_.best};
}

}  // namespace

absl::StatusOr<RunResult> TrainOneSeed(const RunOptions& options) {
  ETC_ASSIGN_OR_RETURN(
      const std::unique_ptr<Trainer> trainer,
      NamingOutOfMemory([] { return "making the model and its optimizer"; },
                        [&] { return Trainer::Start(options); }));
  return NamingOutOfMemory(
      [&] { return absl::StrCat("training in ", options.directory); },
      [&] { return trainer->Run(); });
}

}  // namespace etc
