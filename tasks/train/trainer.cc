#include "tasks/train/trainer.h"

#include <c10/util/Exception.h>
#include <torch/types.h>

#include <exception>
#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/counted.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/out_of_memory.h"
#include "base/process_memory.h"
#include "base/status_macros.h"
#include "etc/weights/checkpoint.h"
#include "tasks/config/run_settings.h"
#include "tasks/data/loader.h"
#include "tasks/output/checkpoint_files.h"
#include "tasks/output/checkpoint_store.h"
#include "tasks/output/event_log.h"
#include "tasks/output/metrics_log.h"
#include "tasks/train/run_report.h"
#include "tasks/train/shared_start.h"
#include "tasks/train/train_step.h"
#include "tasks/train/training_state.h"

namespace etc {
namespace {

// A file of an evaluated checkpoint.
constexpr char kPredictions[] = "/predictions.json";

// Erases the optimizer's state of parameters that are frozen now.
void ForgetFrozen(const TrainableModel& model, NamedTensors* state) {
  const NamedTensors parameters = model.NamedParameters();
  std::erase_if(*state, [&](const auto& entry) {
    const std::string name = entry.first.substr(entry.first.find('.') + 1);
    const auto parameter = parameters.find(name);
    return parameter != parameters.end() && !parameter->second.requires_grad();
  });
}

// One run, from its first update or from a checkpoint to its end or a stop.
class Trainer {
 public:
  static absl::StatusOr<std::unique_ptr<Trainer>> Start(
      const RunOptions& options);

  absl::StatusOr<RunResult> Run();
  // Logs the error (kAborted) that has ended Run, for reports.
  void NoteDivergence(const absl::Status& error) {
    if (is_first()) {
      // `error` itself is returned, whatever becomes of the log.
      report_->ReportDivergence(state_.step, error).IgnoreError();
    }
  }

 private:
  explicit Trainer(const RunOptions& options)
      : options_(options),
        plan_(options.plan),
        store_(options.directory + "/checkpoints",
               {.last = options.plan.train.keep_last,
                .best = options.plan.train.keep_best,
                .metric = options.main_metric}),
        saved_seconds_(SteadySeconds()) {}

  bool is_first() const { return options_.runs.context.is_first(); }
  absl::Status InFirst(const std::function<absl::Status()>& action) const {
    return OnRankZero(options_.runs.context.group, action);
  }
  // Starts from the last checkpoint, or fresh.
  absl::Status StartModel();
  absl::Status StartFresh();
  absl::Status StartFrom(const std::string& checkpoint);
  absl::Status LoadOptimizerState();
  // Takes over the run's directory, which is changed from here on.
  absl::Status TakeOverDirectory();
  // Opens metrics.jsonl behind what the last checkpoint counts, and an event
  // file.
  absl::Status OpenLogs();
  absl::StatusOr<EventLog> OpenEvents() const;

  // Checks that the main metric is one of the scores of an evaluation.
  absl::Status CheckMainMetric();
  absl::Status CheckHasMainMetric(const Metrics& scores) const;
  // Returns true after the last update, or if early stopping ends the run.
  bool IsAtEnd() const {
    return state_.step == plan_.num_steps || HasEndedEarly(plan_.train, state_);
  }
  // The end of the run, once IsAtEnd().
  absl::StatusOr<RunResult> Finish();
  // Returns true if the weights as they are were evaluated.
  bool IsEvaluated() const {
    return state_.evaluated_step == state_.step &&
           (state_.step > 0 || !state_.evaluation.empty());
  }
  // Returns true if something is due after each `every` updates, 0: never.
  bool IsTimeFor(int64_t every) const {
    return every > 0 && state_.step > 0 && state_.step % every == 0;
  }
  bool EvaluationIsDue() const;
  bool HasMoreToDo() const { return !IsAtEnd() || EvaluationIsDue(); }
  // Returns true if a checkpoint is due after so many updates, whatever the
  // clock says.
  bool CheckpointIsDue() const;
  absl::StatusOr<bool> SaveIsDue() const;
  // Sets the weights of a new run that depend on data by those of its first
  // update.
  absl::Status InitializeWeights(const TrainingBatch& batch);
  // Finds a model that gives no loss in evaluation mode, which CheckWeights
  // needs, before it has made updates that could not be saved: throws what it
  // throws. The first update says more of a loss that is not finite.
  absl::Status TryCheck(const TrainingBatch& batch);
  // Makes one update and reports it. False if the run was stopped before.
  absl::StatusOr<bool> MakeUpdate();
  // MakeUpdate; if it fails, the updates before it are saved.
  absl::StatusOr<bool> MakeUpdateOrSave();
  // Saves the updates made before `error`, as a stop does, and adds to the
  // error where they are and how to go on.
  absl::Status SaveAfter(const absl::Status& error);
  absl::Status SaveWhatIsWhole();
  // Adds the last checkpoint to `error`, and how to go on from there.
  absl::Status WithLast(const absl::Status& error, bool has_all_updates) const;
  absl::Status Evaluate();
  // Adds the files of an evaluation to the last checkpoint.
  absl::Status AddEvaluation(const Evaluation& evaluation, bool is_best);
  absl::Status WriteFiles(const std::string& directory) const;
  // Computes the loss on the last examples with the weights as they are. Where
  // that takes more memory than there is, it is enough that they are finite.
  //   kAborted  the loss is not finite
  absl::Status CheckWeights();
  // Needs memory of the device for CheckWeights alone.
  absl::Status WriteCheckpoint();
  absl::Status Save();
  // Save; if it fails, adds the last checkpoint to the error.
  absl::Status SaveOrNameLast();
  // Passes on the store's messages.
  void ReportStore();
  RunResult Result(bool finished) const;
  double SecondsCommunicating() const {
    return options_.runs.context.group == nullptr
               ? 0
               : options_.runs.context.group->seconds_waited();
  }
  std::string DeviceName() const { return train_step_->device().str(); }

  const RunOptions options_;
  const RunPlan& plan_;
  CheckpointStore store_;

  ModelWithFiles model_;
  std::unique_ptr<OptimizerShards> shards_;  // null: it is not sharded
  std::unique_ptr<TrainStep> train_step_;
  // The state of all ranks, on rank 0, while a checkpoint is read or written.
  NamedTensors optimizer_state_;
  TrainingState state_;
  std::unique_ptr<BatchLoader> loader_;
  std::unique_ptr<RunReport> report_;

  // The step of the last checkpoint.
  std::optional<int64_t> saved_step_;
  // The time of the last checkpoint by this start, or of the start.
  double saved_seconds_;
  bool has_evaluated_start_ = false;
  // Examples of the last update: the loss on them is checked before weights are
  // saved.
  Examples checked_examples_;
  // The status of rank 0's log and reporter, to be shared when the ranks next
  // agree.
  absl::Status reported_;
  // True if all ranks return the error that ends the run; they then still make
  // the same collective operations in the same order.
  bool all_failed_together_ = false;
};

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Start(
    const RunOptions& options) {
  TORCH_CHECK(!options.runs.context.is_first() || options.lock != nullptr,
              "a run needs the lock of ", options.directory);
  // The constructor is private: make_unique cannot see it.
  std::unique_ptr<Trainer> trainer(new Trainer(options));
  ETC_RETURN_IF_ERROR(CheckSameRun(options));
  ETC_ASSIGN_OR_RETURN(ModelToTrain made, MakeModelToTrain(options));
  trainer->model_ = std::move(made.files);
  trainer->shards_ = std::move(made.shards);
  trainer->train_step_ = std::move(made.train_step);
  ETC_RETURN_IF_ERROR(trainer->InFirst([&] { return trainer->StartModel(); }));
  ETC_RETURN_IF_ERROR(
      BroadcastStart(options.runs.context.group,
                     {.parameters = trainer->model_.model->NamedParameters(),
                      .optimizer_state = &trainer->optimizer_state_,
                      .shards = trainer->shards_.get(),
                      .state = &trainer->state_,
                      .saved_step = &trainer->saved_step_}));
  ETC_RETURN_IF_ERROR(trainer->LoadOptimizerState());
  ETC_RETURN_IF_ERROR(trainer->CheckMainMetric());
  ETC_RETURN_IF_ERROR(
      trainer->InFirst([&] { return trainer->TakeOverDirectory(); }));
  ETC_ASSIGN_OR_RETURN(const TrainingLoaderOptions loader,
                       RankLoaderOptions(options));
  trainer->loader_ = MakeLoader(options, loader, trainer->state_.position);
  return trainer;
}

absl::Status Trainer::StartModel() {
  if (options_.remove_earlier != nullptr) {
    return StartFresh();
  }
  if (const std::optional<std::string> last = store_.last()) {
    return StartFrom(*last);
  }
  if (Resumes(options_.runs.earlier)) {
    options_.runs.context.Message(absl::StrCat(
        options_.directory,
        " has no checkpoint yet: training begins with the first update"));
  }
  return StartFresh();
}

absl::Status Trainer::LoadOptimizerState() {
  const absl::Status loaded = train_step_->optimizer().LoadState(
      std::exchange(optimizer_state_, NamedTensors()));
  return options_.runs.context.Agree(loaded);
}

absl::Status Trainer::TakeOverDirectory() {
  // From here on an earlier run loses files.
  if (options_.runs.context.is_stopped()) {
    return absl::CancelledError("the start of the run was stopped");
  }
  if (options_.remove_earlier != nullptr) {
    ETC_RETURN_IF_ERROR(options_.remove_earlier());
  }
  ETC_RETURN_IF_ERROR(RemoveAbandonedTemporaries(options_.directory));
  ETC_RETURN_IF_ERROR(store_.TakeOver());
  // May fail, so it comes before the result is withdrawn.
  ETC_RETURN_IF_ERROR(OpenLogs());
  if (options_.go_on != nullptr && HasMoreToDo()) {
    ETC_RETURN_IF_ERROR(options_.go_on());
  }
  // The best one may be another than before (ReplaceLostBest).
  if (!state_.best.empty()) {
    ETC_RETURN_IF_ERROR(store_.MarkAsBest(state_.best_step));
  }
  // A run that died before it noted this.
  if (IsEvaluated()) {
    ETC_RETURN_IF_ERROR(store_.NoteEvaluation(
        state_.evaluation, state_.best_step == state_.step &&
                               (state_.step > 0 || !state_.best.empty())));
  }
  ReportStore();
  return absl::OkStatus();
}

absl::Status Trainer::OpenLogs() {
  const std::string metrics = options_.directory + "/metrics.jsonl";
  ETC_ASSIGN_OR_RETURN(MetricsLog log,
                       MetricsLog::Open(metrics, state_.metrics_bytes));
  if (log.size() < state_.metrics_bytes) {
    options_.runs.context.Warn(
        absl::StrCat(metrics, " lacks lines from before the checkpoint: of ",
                     state_.metrics_bytes, " bytes ", log.size(), " are left"));
  }
  std::optional<EventLog> events;
  if (plan_.train.tensorboard) {
    ETC_ASSIGN_OR_RETURN(EventLog opened, OpenEvents());
    events.emplace(std::move(opened));
  }
  report_ =
      std::make_unique<RunReport>(options_, std::move(log), std::move(events));
  return absl::OkStatus();
}

absl::StatusOr<EventLog> Trainer::OpenEvents() const {
  const std::string directory = options_.directory + "/tensorboard";
  // Nothing of an earlier process is kept, and its settings may be others.
  if (state_.metrics_bytes == 0) {
    ETC_RETURN_IF_ERROR(EventLog::Remove(directory));
  }
  // As Markdown takes a text as it is.
  const std::string configuration = absl::StrCat(
      "    ", absl::StrReplaceAll(plan_.configuration, {{"\n", "\n    "}}));
  return EventLog::Open(directory,
                        {.step = state_.step, .configuration = configuration});
}

absl::Status Trainer::StartFresh() {
  ETC_ASSIGN_OR_RETURN(const Notices notices, model_.load_initial_weights());
  options_.runs.context.TellOnce(notices);
  return absl::OkStatus();
}

absl::Status Trainer::StartFrom(const std::string& checkpoint) {
  ETC_RETURN_IF_ERROR(CheckCheckpointFiles(checkpoint, CheckpointUse::kResume));
  ETC_ASSIGN_OR_RETURN(
      TrainingStateFile saved,
      ReadTrainingState(absl::StrCat(checkpoint, "/", kTrainingStateFile)));
  ETC_ASSIGN_OR_RETURN(
      const std::optional<EvaluatedState> evaluated,
      ReadStateAfterEvaluation(absl::StrCat(checkpoint, "/", kEvaluationFile)));
  ETC_ASSIGN_OR_RETURN(
      const std::vector<SettingChange> changes,
      CheckSameSettings(
          evaluated.has_value() ? evaluated->settings : saved.settings,
          plan_.settings, options_.runs.allow_changes,
          plan_.evaluates_train_files));
  ETC_RETURN_IF_ERROR(model_.load(checkpoint));
  ETC_RETURN_IF_ERROR(CheckFinite(checkpoint, saved.optimizer));
  optimizer_state_ = std::move(saved.optimizer);
  ForgetFrozen(*model_.model, &optimizer_state_);
  state_ = evaluated.has_value() ? evaluated->state : std::move(saved.state);
  saved_step_ = state_.step;
  ETC_ASSIGN_OR_RETURN(std::vector<std::string> messages,
                       GoOnWithChanges(changes, plan_, &state_));
  if (!state_.best.empty() && !store_.HasCheckpoint(state_.best_step)) {
    messages.push_back(
        ReplaceLostBest(options_.main_metric, store_.evaluated(), &state_));
  }
  for (const std::string& message : messages) {
    options_.runs.context.Message(message);
  }
  if (saved.device != DeviceName()) {
    options_.runs.context.Message(absl::StrCat(
        "the device was ", saved.device, " and is now ", DeviceName(),
        ": from here on sums are rounded and dropout is drawn as there"));
  }
  options_.runs.context.Message(
      absl::StrCat("resumed from ", checkpoint, ", after ", state_.step, " of ",
                   Counted(plan_.num_steps, "update")));
  return absl::OkStatus();
}

absl::Status Trainer::CheckMainMetric() {
  if (options_.probe == nullptr || IsAtEnd()) {
    return absl::OkStatus();
  }
  const absl::Status probed = options_.probe(model_.model.get());
  return absl::IsCancelled(probed) ? absl::OkStatus() : probed;
}

absl::Status Trainer::CheckHasMainMetric(const Metrics& scores) const {
  return options_.probe == nullptr
             ? absl::OkStatus()
             : etc::CheckHasMainMetric(scores, options_.main_metric.name);
}

bool Trainer::EvaluationIsDue() const {
  if (options_.evaluate == nullptr) {
    return false;
  }
  if (state_.step == 0) {
    return plan_.evaluate_at_start && !has_evaluated_start_ &&
           state_.evaluation.empty();
  }
  return state_.evaluated_step != state_.step &&
         (state_.step == plan_.num_steps || IsTimeFor(plan_.evaluate_every));
}

bool Trainer::CheckpointIsDue() const {
  // A run without evaluations keeps the checkpoints that others evaluate.
  return EvaluationIsDue() || state_.step == plan_.num_steps ||
         IsTimeFor(plan_.evaluate_every) ||
         IsTimeFor(plan_.train.checkpoint_every);
}

absl::StatusOr<bool> Trainer::SaveIsDue() const {
  if (saved_step_ == state_.step) {
    return false;
  }
  if (CheckpointIsDue()) {
    return true;
  }
  const double limit = 60 * plan_.train.checkpoint_minutes;
  if (limit == 0 || state_.step == 0) {
    return false;
  }
  const double seconds = SteadySeconds() - saved_seconds_;
  if (options_.runs.context.group == nullptr) {
    return seconds >= limit;
  }
  // The clock of rank 0 decides.
  const torch::Tensor of_first = torch::full({1}, seconds, torch::kFloat64);
  ETC_RETURN_IF_ERROR(options_.runs.context.group->Broadcast({of_first}));
  return of_first.item<double>() >= limit;
}

absl::StatusOr<RunResult> Trainer::Finish() {
  ETC_RETURN_IF_ERROR(InFirst([this] { return reported_; }));
  RunResult result = Result(/*finished=*/true);
  if (!result.end_reason.empty()) {
    options_.runs.context.Message(absl::StrCat(
        "stopped early, after ", state_.step, " of ",
        Counted(plan_.num_steps, "update"), ": ", result.end_reason));
    if (is_first()) {
      report_->ReportUnused(loader_->skipped());
    }
  }
  return result;
}

absl::StatusOr<RunResult> Trainer::Run() {
  while (true) {
    // Before the evaluation: if that fails, the updates are not lost.
    ETC_ASSIGN_OR_RETURN(const bool save_is_due, SaveIsDue());
    if (save_is_due) {
      ETC_RETURN_IF_ERROR(SaveOrNameLast());
    }
    if (EvaluationIsDue()) {
      const absl::Status evaluated = Evaluate();
      if (absl::IsCancelled(evaluated)) {
        break;
      }
      ETC_RETURN_IF_ERROR(evaluated);
    }
    if (IsAtEnd()) {
      return Finish();
    }
    ETC_ASSIGN_OR_RETURN(const bool made, MakeUpdateOrSave());
    if (!made) {
      break;
    }
  }
  if (saved_step_ != state_.step) {
    // A large model takes a while to write.
    options_.runs.context.Message("stopping: saving what was trained so far");
    ETC_RETURN_IF_ERROR(SaveOrNameLast());
  }
  ETC_RETURN_IF_ERROR(InFirst([this] { return reported_; }));
  options_.runs.context.Message(absl::StrCat(
      "stopped after ", state_.step, " of ", Counted(plan_.num_steps, "update"),
      "; saved in ", store_.last().value_or("")));
  return Result(/*finished=*/false);
}

absl::StatusOr<bool> Trainer::MakeUpdateOrSave() {
  absl::Status error;
  try {
    const absl::StatusOr<bool> made = NamingOutOfMemory(
        [&] { return absl::StrCat("training in ", options_.directory); },
        [this] { return MakeUpdate(); });
    if (made.ok()) {
      return made;
    }
    error = made.status();
  } catch (const c10::Error& internal) {
    error = absl::InternalError(
        absl::StrCat("internal error: ", internal.what_without_backtrace()));
  } catch (const std::exception& internal) {
    // A mistake of the program is no reason to lose the updates made.
    error =
        absl::InternalError(absl::StrCat("internal error: ", internal.what()));
  }
  return SaveAfter(error);
}

absl::Status Trainer::SaveAfter(const absl::Status& error) {
  const bool takes_part =
      is_first() || (shards_ != nullptr && all_failed_together_);
  if (state_.step == 0 || !takes_part) {
    return absl::IsAborted(error) ? store_.WithLastGood(error) : error;
  }
  const bool has_diverged = absl::IsAborted(error);
  absl::Status saved;
  // Weights that are about to diverge do not replace a checkpoint, which may
  // be from before that began.
  if (saved_step_ != state_.step &&
      !(has_diverged && store_.last().has_value())) {
    saved = NamingOutOfMemory([] { return "saving what was trained"; },
                              [this] { return SaveWhatIsWhole(); });
  }
  if (has_diverged) {
    return store_.WithLastGood(error);
  }
  if (saved.ok()) {
    return WithLast(error, /*has_all_updates=*/true);
  }
  return WithLast(
      absl::Status(
          error.code(),
          absl::StrCat(error.message(), "; the updates ",
                       store_.last().has_value() ? "after the last checkpoint"
                                                 : "made so far",
                       " could not be saved: ", saved.message())),
      /*has_all_updates=*/false);
}

absl::Status Trainer::SaveWhatIsWhole() {
  if (!train_step_->is_between_updates()) {
    return absl::FailedPreconditionError("the weights were just being changed");
  }
  if (shards_ == nullptr) {
    // Rank 0 has all of it, and waits for no other: one may be missing.
    return WriteCheckpoint();
  }
  if (!all_failed_together_) {
    return absl::FailedPreconditionError(
        "each process has a share of the optimizer's state "
        "(train.shard_optimizer), and not all are there");
  }
  return Save();
}

absl::Status Trainer::WithLast(const absl::Status& error,
                               bool has_all_updates) const {
  const std::optional<std::string> last = store_.last();
  if (!last.has_value()) {
    return error;
  }
  return absl::Status(
      error.code(),
      absl::StrCat(
          error.message(), "; ",
          has_all_updates
              ? absl::StrCat(Counted(state_.step, "update"),
                             state_.step == 1 ? " is" : " are", " saved in ")
              : "the last checkpoint is ",
          *last, ": the same command with --resume goes on from there",
          absl::IsInvalidArgument(error) && !plan_.evaluates_train_files
              ? ", after a change of the data with --allow-changes "
                "data.train"
              : ""));
}

absl::Status Trainer::InitializeWeights(const TrainingBatch& batch) {
  if (state_.step > 0 || model_.initialize_by_data == nullptr) {
    return absl::OkStatus();
  }
  ETC_ASSIGN_OR_RETURN(const std::string message,
                       InitializeByData(options_.runs.context.group,
                                        {.model = model_,
                                         .batch = batch,
                                         .device = train_step_->device(),
                                         .seed = plan_.seed}));
  if (!message.empty()) {
    options_.runs.context.Message(message);
  }
  return absl::OkStatus();
}

absl::Status Trainer::TryCheck(const TrainingBatch& batch) {
  const Examples* const here = batch.first_here();
  if (state_.step > 0 || here == nullptr) {
    return absl::OkStatus();
  }
  const absl::Status checked = NamingOutOfMemory(
      [] { return "checking the first weights"; },
      [&] { return train_step_->CheckLoss(*here, /*step=*/0); });
  return absl::IsAborted(checked) || absl::IsResourceExhausted(checked)
             ? absl::OkStatus()
             : checked;
}

absl::StatusOr<bool> Trainer::MakeUpdate() {
  double begin = SteadySeconds();
  const double waited_before = loader_->seconds_waited();
  const double communicated = SecondsCommunicating();
  const int64_t page_faults = PageFaults();
  const absl::StatusOr<TrainingBatch> batch = loader_->Next();
  const absl::StatusOr<bool> goes_on =
      GoesOn(options_.runs.context.group,
             reported_.ok() ? batch.status() : std::move(reported_));
  if (!goes_on.ok()) {
    // An error of the group itself is not known to be one of all.
    all_failed_together_ = !absl::IsUnavailable(goes_on.status());
    return goes_on;
  }
  if (!*goes_on) {
    return false;
  }
  const double waited = loader_->seconds_waited() - waited_before;
  const double prepares = SteadySeconds();
  ETC_RETURN_IF_ERROR(InitializeWeights(*batch));
  ETC_RETURN_IF_ERROR(TryCheck(*batch));
  begin += SteadySeconds() - prepares;  // once a run: no update's own time
  const absl::StatusOr<std::optional<TrainStepResult>> update =
      NamingOutOfMemory(
          [&] { return absl::StrCat("making update ", state_.step + 1); },
          [&] {
            return train_step_->Run(*batch, state_.step,
                                    options_.runs.context.stop);
          });
  ETC_RETURN_IF_ERROR(update.status());
  if (!update->has_value()) {
    return false;
  }
  if (const Examples* const here = batch->first_here()) {
    checked_examples_ = *here;
  }
  ++state_.step;
  state_.examples += plan_.loader.batch_size;
  state_.position = batch->next;
  if (is_first()) {
    reported_ = report_->ReportUpdate(
        state_, **update,
        {.seconds = SteadySeconds() - begin,
         .seconds_waited = waited,
         .seconds_communicating = SecondsCommunicating() - communicated,
         .page_faults = PageFaults() - page_faults},
        loader_->skipped());
    state_.metrics_bytes = report_->metrics_bytes();
  }
  return true;
}

absl::Status Trainer::Evaluate() {
  const absl::StatusOr<Evaluation> evaluation =
      options_.evaluate(model_.model.get());
  if (!evaluation.ok()) {
    return absl::Status(
        evaluation.status().code(),
        absl::StrCat(evaluation.status().message(),
                     "; in the evaluation after ", state_.step,
                     " updates, which are saved in ",
                     store_.last().value_or(options_.directory),
                     ": the same command with --resume goes on from there"));
  }
  ETC_RETURN_IF_ERROR(CheckHasMainMetric(evaluation->metrics));
  has_evaluated_start_ = true;
  const Metrics best_before = state_.best;
  CountStale(plan_.train, options_.main_metric, evaluation->metrics, &state_);
  const bool is_best =
      SetScores(evaluation->metrics, options_.main_metric, &state_);
  return InFirst([&]() -> absl::Status {
    ETC_RETURN_IF_ERROR(
        report_->ReportEvaluation(state_, *evaluation, best_before));
    state_.metrics_bytes = report_->metrics_bytes();
    return AddEvaluation(*evaluation, is_best);
  });
}

absl::Status Trainer::AddEvaluation(const Evaluation& evaluation,
                                    bool is_best) {
  ETC_RETURN_IF_ERROR(report_->Sync());
  const std::string last = *store_.last();
  const std::string predictions = evaluation.predictions == nullptr
                                      ? ""
                                      : evaluation.predictions->FileContents();
  if (!predictions.empty()) {
    ETC_RETURN_IF_ERROR(WriteFileAtomically(last + kPredictions, predictions));
  }
  // The last file, because a checkpoint with it counts as evaluated.
  ETC_RETURN_IF_ERROR(
      WriteStateAfterEvaluation({.state = state_, .settings = plan_.settings},
                                absl::StrCat(last, "/", kEvaluationFile)));
  const absl::Status noted = store_.NoteEvaluation(state_.evaluation, is_best);
  ReportStore();
  return noted;
}

absl::Status Trainer::WriteFiles(const std::string& directory) const {
  ETC_RETURN_IF_ERROR(model_.save(directory));
  return WriteTrainingState(
      {.state = state_,
       .settings = plan_.settings,
       .device = DeviceName(),
       .program = options_.runs.program,
       .optimizer = shards_ != nullptr ? optimizer_state_
                                       : train_step_->optimizer().State()},
      absl::StrCat(directory, "/", kTrainingStateFile));
}

absl::Status Trainer::Save() {
  if (shards_ != nullptr) {
    ETC_ASSIGN_OR_RETURN(
        optimizer_state_,
        shards_->GatherState(train_step_->optimizer().State()));
  }
  ETC_RETURN_IF_ERROR(InFirst([this] { return WriteCheckpoint(); }));
  optimizer_state_.clear();
  saved_step_ = state_.step;
  saved_seconds_ = SteadySeconds();
  return absl::OkStatus();
}

absl::Status Trainer::SaveOrNameLast() {
  const absl::Status saved = Save();
  // The error of weights that have diverged names it already.
  return saved.ok() || absl::IsAborted(saved)
             ? saved
             : WithLast(saved, /*has_all_updates=*/false);
}

absl::Status Trainer::CheckWeights() {
  // A run that is stopped before its first batch has no examples to check with:
  // its weights are the first ones, or those of the last checkpoint.
  if (checked_examples_.empty()) {
    return absl::OkStatus();
  }
  const absl::Status checked = NamingOutOfMemory(
      [&] { return absl::StrCat("checking update ", state_.step); },
      [&] { return train_step_->CheckLoss(checked_examples_, state_.step); });
  if (!absl::IsResourceExhausted(checked)) {
    return store_.WithLastGood(checked);
  }
  // The update has looked at the norm of its weights (TrainStep::Run).
  options_.runs.context.Warn(
      absl::StrCat(checked.message(),
                   ": its weights are finite, and are saved without a loss"));
  return absl::OkStatus();
}

absl::Status Trainer::WriteCheckpoint() {
  ETC_RETURN_IF_ERROR(CheckWeights());
  ETC_RETURN_IF_ERROR(report_->Sync());  // what `metrics_bytes` counts
  const absl::Status saved = store_.Save(
      state_.step,
      [this](const std::string& directory) { return WriteFiles(directory); },
      /*is_interim=*/!CheckpointIsDue());
  ReportStore();
  return saved;
}

void Trainer::ReportStore() {
  for (const std::string& message : store_.TakeMessages()) {
    options_.runs.context.Message(message);
  }
  for (const std::string& warning : store_.TakeWarnings()) {
    options_.runs.context.Warn(warning);
  }
}

RunResult Trainer::Result(bool finished) const {
  const double improvement = plan_.train.early_stopping_improvement;
  std::string end_reason;
  if (finished && state_.step < plan_.num_steps) {
    end_reason = absl::StrCat(
        options_.main_metric.name, " did not improve",
        improvement > 0 ? absl::StrCat(" by more than ", improvement) : "",
        " in ", Counted(state_.stale_evaluations, "evaluation"));
  }
  return {.finished = finished,
          .seed = plan_.seed,
          .directory = options_.directory,
          .steps = state_.step,
          .last = state_.evaluation,
          .best_step = state_.best_step,
          .best = state_.best,
          .end_reason = std::move(end_reason),
          .program = options_.runs.program};
}

}  // namespace

absl::StatusOr<RunResult> TrainOneSeed(const RunOptions& options) {
  ETC_ASSIGN_OR_RETURN(
      const std::unique_ptr<Trainer> trainer,
      NamingOutOfMemory([] { return "making the model and its optimizer"; },
                        [&] { return Trainer::Start(options); }));
  absl::StatusOr<RunResult> result = NamingOutOfMemory(
      [&] { return absl::StrCat("training in ", options.directory); },
      [&] { return trainer->Run(); });
  if (absl::IsAborted(result.status())) {
    trainer->NoteDivergence(result.status());
  }
  return result;
}

}  // namespace etc
