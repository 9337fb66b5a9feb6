#include "tasks/train/trainer.h"

#include <torch/utils.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "etc/formats/counted.h"
#include "etc/formats/file.h"
#include "etc/formats/out_of_memory.h"
#include "etc/formats/status_macros.h"
#include "etc/weights/source_files.h"
#include "nlohmann/json.hpp"
#include "tasks/data/loader.h"
#include "tasks/data/shuffle.h"
#include "tasks/text/punkt_tables.h"
#include "tasks/text/sentence_splitter.h"
#include "tasks/train/checkpoint_store.h"
#include "tasks/train/evaluate.h"
#include "tasks/train/finetuned_model.h"
#include "tasks/train/metrics_log.h"
#include "tasks/train/optimizer.h"
#include "tasks/train/run_plan.h"
#include "tasks/train/score_table.h"
#include "tasks/train/training_state.h"
#include "tasks/train/update.h"

namespace etc {
namespace {

// The value of the main metric, or nothing.
std::optional<double> MainMetric(const Metrics& metrics, const Task& task) {
  for (const auto& [name, value] : metrics) {
    if (name == task.main_metric()) {
      return value;
    }
  }
  return std::nullopt;
}

// One run, from its first update or from a checkpoint to its end or a stop.
class Trainer {
 public:
  static absl::StatusOr<std::unique_ptr<Trainer>> Start(
      const RunOptions& options);

  absl::StatusOr<RunResult> Run();

 private:
  Trainer(const RunOptions& options, CheckpointStore store)
      : options_(options),
        config_(options.config),
        num_steps_(NumStepsOf(config_, options.train.size())),
        store_(std::move(store)) {}

  absl::Status StartFresh();
  absl::Status StartFrom(const std::string& checkpoint);
  // The files that each checkpoint has a copy of.
  absl::Status ReadTextFiles();

  bool EvaluationIsDue() const;
  bool SaveIsDue() const;
  // Makes one update and tells of it. False if the run was stopped before.
  absl::StatusOr<bool> MakeUpdate();
  absl::Status Report(const Update& update, double seconds, double waited);
  // What training could not use, a message for each reason.
  void ReportLeftOut();
  // A message, if more records were skipped than `*reported`.
  void ReportSkipped(const std::string& data, const SkippedRecords& skipped,
                     int64_t* reported);
  absl::Status EvaluateNow();
  absl::Status WriteFiles(const std::string& directory) const;
  absl::Status Save();
  RunResult Result(bool finished) const;

  const RunOptions options_;
  const FinetuneConfig& config_;
  const int64_t num_steps_;
  CheckpointStore store_;
  std::string vocabulary_;
  std::optional<PunktFiles> punkt_;

  FinetunedModel model_;
  std::unique_ptr<Updater> updater_;
  TrainingState state_;
  std::unique_ptr<TrainingLoader> loader_;
  std::unique_ptr<MetricsLog> log_;

  std::optional<int64_t> saved_step_;
  bool is_best_ = false;     // the last evaluation
  std::string predictions_;  // of the last evaluation, if since the last save
  ProgressMeter meter_;
  int64_t skipped_train_ = 0;
  int64_t skipped_dev_ = 0;
};

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Start(
    const RunOptions& options) {
  ETC_RETURN_IF_ERROR(CreateDirectories(options.directory));
  ETC_ASSIGN_OR_RETURN(
      CheckpointStore store,
      CheckpointStore::Open(options.directory + "/checkpoints"));
  const std::optional<std::string> last = store.last();
  if (last.has_value() && !options.resume) {
    return absl::AlreadyExistsError(
        absl::StrCat(options.directory,
                     " has a run already: resume it, or choose another output "
                     "directory"));
  }
  // The constructor is private: make_unique cannot see it.
  std::unique_ptr<Trainer> trainer(new Trainer(options, std::move(store)));
  if (trainer->num_steps_ < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "train.epochs (", options.config.train.epochs,
        ") come to no update: the training data have ",
        Counted(options.train.size(), "record"), " and train.batch_size is ",
        options.config.train.batch_size));
  }
  ETC_RETURN_IF_ERROR(trainer->ReadTextFiles());
  torch::manual_seed(CombineSeeds({static_cast<uint64_t>(options.seed)}));
  trainer->model_ = MakeFinetunedModel(options.config, options.task);
  ETC_ASSIGN_OR_RETURN(
      auto optimizer,
      MakeOptimizer(options.config.optimizer, trainer->model_.Parameters()));
  trainer->updater_ = std::make_unique<Updater>(
      trainer->model_, std::move(optimizer),
      Updater::Options{
          .batch_size = options.config.train.batch_size,
          .clip_norm = options.config.optimizer.clip_norm,
          .schedule = ScheduleOf(options.config, trainer->num_steps_),
          .seed = options.seed});
  ETC_RETURN_IF_ERROR(last.has_value() ? trainer->StartFrom(*last)
                                       : trainer->StartFresh());
  ETC_ASSIGN_OR_RETURN(MetricsLog log,
                       MetricsLog::Open(options.directory + "/metrics.jsonl",
                                        trainer->state_.metrics_bytes));
  trainer->log_ = std::make_unique<MetricsLog>(std::move(log));
  TrainingLoaderOptions loader = LoaderOptionsOf(options.config, options.seed);
  loader.stop = options.stop;
  trainer->loader_ = std::make_unique<TrainingLoader>(&options.train, loader,
                                                      trainer->state_.position);
  return trainer;
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
  ETC_RETURN_IF_ERROR(CheckSameSettings(
      saved.settings,
      RunSettings(config_, options_.seed, options_.train.size())));
  ETC_RETURN_IF_ERROR(LoadFinetunedWeights(checkpoint, config_, model_));
  ETC_RETURN_IF_ERROR(updater_->optimizer().LoadState(saved.optimizer));
  state_ = std::move(saved.state);
  saved_step_ = state_.step;
  // A run that died between the two links.
  if (state_.best_step == state_.step && state_.step > 0) {
    ETC_RETURN_IF_ERROR(store_.MarkLastAsBest());
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
    if (EvaluationIsDue()) {
      const absl::Status evaluated = EvaluateNow();
      if (absl::IsCancelled(evaluated)) {
        break;
      }
      ETC_RETURN_IF_ERROR(evaluated);
      ETC_RETURN_IF_ERROR(Save());
    } else if (SaveIsDue()) {
      ETC_RETURN_IF_ERROR(Save());
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
    ETC_RETURN_IF_ERROR(Save());
  }
  options_.reporter->Message(absl::StrCat("stopped after ", state_.step, " of ",
                                          Counted(num_steps_, "update"),
                                          "; saved in ", *store_.last()));
  return Result(/*finished=*/false);
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
  const absl::StatusOr<std::optional<Update>> update = NamingOutOfMemory(
      [&] { return absl::StrCat("making update ", state_.step + 1); },
      [&] { return updater_->Make(batch, state_.step, options_.stop); });
  if (absl::IsAborted(update.status())) {
    const std::optional<std::string> last = store_.last();
    return absl::AbortedError(absl::StrCat(
        options_.directory, ": ", update.status().message(), "; ",
        last.has_value() ? absl::StrCat("the last good checkpoint is ", *last)
                         : "there is no checkpoint yet"));
  }
  ETC_RETURN_IF_ERROR(update.status());
  if (!update->has_value()) {
    return false;
  }
  ++state_.step;
  state_.position = batch.next;
  ETC_RETURN_IF_ERROR(Report(**update, SteadySeconds() - begin, waited));
  return true;
}

absl::Status Trainer::Report(const Update& update, double seconds,
                             double waited) {
  const double epoch =
      static_cast<double>(state_.step * config_.train.batch_size) /
      static_cast<double>(NumExamplesOf(config_, options_.train.size()));
  const auto examples = static_cast<double>(update.examples);
  const auto tokens = static_cast<double>(update.tokens);
  ETC_RETURN_IF_ERROR(log_->Write({{"step", state_.step},
                                   {"epoch", epoch},
                                   {"loss", update.loss},
                                   {"learning_rate", update.learning_rate},
                                   {"gradient_norm", update.gradient_norm},
                                   {"examples", update.examples},
                                   {"tokens", update.tokens},
                                   {"examples_per_second", examples / seconds},
                                   {"tokens_per_second", tokens / seconds},
                                   {"seconds_waited", waited}}));
  state_.metrics_bytes = log_->size();
  meter_.Add({.loss = update.loss,
              .seconds = seconds,
              .seconds_waited = waited,
              .examples = examples,
              .tokens = tokens});
  Progress progress{.step = state_.step,
                    .num_steps = num_steps_,
                    .epoch = epoch,
                    .learning_rate = update.learning_rate};
  meter_.Fill(&progress);
  options_.reporter->Update(progress);
  if (state_.step == num_steps_ || skipped_train_ == 0) {
    ReportSkipped("training", loader_->skipped(), &skipped_train_);
  }
  if (state_.step == num_steps_) {
    ReportLeftOut();
  }
  return absl::OkStatus();
}

void Trainer::ReportSkipped(const std::string& data,
                            const SkippedRecords& skipped, int64_t* reported) {
  if (skipped.count > *reported) {
    options_.reporter->Message(absl::StrCat(
        data, ": skipped ", Counted(skipped.count, "bad record"),
        skipped.count == 1 ? ": " : ", the first: ", skipped.first_message));
    *reported = skipped.count;
  }
}

void Trainer::ReportLeftOut() {
  for (const auto& [reason, count] : loader_->skipped().left_out) {
    options_.reporter->Message(absl::StrCat(
        "training: left out ", Counted(count, "example"), ": ", reason));
  }
}

absl::Status Trainer::EvaluateNow() {
  EvaluateOptions evaluate = EvaluateOptionsFromConfig(config_);
  evaluate.reporter = options_.reporter;
  evaluate.stop = options_.stop;
  ETC_ASSIGN_OR_RETURN(
      const Evaluation evaluation,
      NamingOutOfMemory(
          [&] {
            return absl::StrCat("evaluating ", evaluate.batch_size,
                                " examples at a time");
          },
          [&] {
            return Evaluate(model_, options_.task, *options_.dev, evaluate);
          }));
  state_.evaluated_step = state_.step;
  state_.evaluation = evaluation.metrics;
  predictions_ = evaluation.predictions->FileContents();
  const std::optional<double> now =
      MainMetric(evaluation.metrics, options_.task);
  const std::optional<double> best = MainMetric(state_.best, options_.task);
  is_best_ = now.has_value() && (!best.has_value() || *now > *best);
  if (is_best_) {
    state_.best_step = state_.step;
    state_.best = evaluation.metrics;
  }
  nlohmann::ordered_json scores = nlohmann::ordered_json::object();
  for (const auto& [name, value] : evaluation.metrics) {
    scores[name] = value;
  }
  ETC_RETURN_IF_ERROR(log_->Write({{"step", state_.step},
                                   {"evaluation", scores},
                                   {"examples", evaluation.num_examples},
                                   {"seconds", evaluation.seconds}}));
  state_.metrics_bytes = log_->size();
  // The other scores are in the log.
  const std::string main = options_.task.main_metric();
  std::string comparison = is_best_ ? ", the best so far" : "";
  if (!is_best_ && best.has_value()) {
    comparison =
        absl::StrCat("; best so far: ", FormatMainScore(state_.best, main),
                     " after ", Counted(state_.best_step, "update"));
  }
  options_.reporter->Message(absl::StrFormat(
      "evaluation after %s: %s%s (%s, %.1f s)", Counted(state_.step, "update"),
      FormatMainScore(evaluation.metrics, main), comparison,
      Counted(evaluation.num_examples, "example"), evaluation.seconds));
  ReportSkipped("evaluation", evaluation.skipped, &skipped_dev_);
  return absl::OkStatus();
}

absl::Status Trainer::WriteFiles(const std::string& directory) const {
  ETC_RETURN_IF_ERROR(
      WriteFinetunedModel({.config = config_,
                           .model = model_,
                           .vocabulary = vocabulary_,
                           .punkt = punkt_.has_value() ? &*punkt_ : nullptr},
                          directory));
  if (!predictions_.empty()) {
    ETC_RETURN_IF_ERROR(
        WriteFileAtomically(directory + "/predictions.json", predictions_));
  }
  return WriteTrainingState(
      {.state = state_,
       .settings = RunSettings(config_, options_.seed, options_.train.size()),
       .optimizer = updater_->optimizer().State()},
      directory + "/training_state.safetensors");
}

absl::Status Trainer::Save() {
  ETC_RETURN_IF_ERROR(store_.Save(
      state_.step,
      [this](const std::string& directory) { return WriteFiles(directory); }));
  saved_step_ = state_.step;
  if (is_best_) {
    ETC_RETURN_IF_ERROR(store_.MarkLastAsBest());
  }
  is_best_ = false;
  predictions_.clear();
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
