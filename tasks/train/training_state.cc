#include "tasks/train/training_state.h"

#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/counted.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "tasks/output/metrics_log.h"
#include "tasks/output/sealed_json.h"

namespace etc {
namespace {

using Json = nlohmann::json;

// Keys of the file's metadata, and the prefix of its tensors.
constexpr char kState[] = "training_state";
constexpr char kSettings[] = "settings";
constexpr char kDevice[] = "device";
constexpr char kProgram[] = "program";
constexpr char kOptimizer[] = "optimizer.";

// Pairs, because an object would not keep their order. JSON has no infinity.
Json MetricPairs(const Metrics& metrics) {
  Json pairs = Json::array();
  for (const auto& [name, value] : metrics) {
    pairs.push_back(
        {name, std::isfinite(value) ? Json(value) : Json(absl::StrCat(value))});
  }
  return pairs;
}

// Returns the number that MetricPairs wrote.
std::optional<double> ScoreOf(const Json& json) {
  if (json.is_number()) {
    return json.get<double>();
  }
  double value = std::numeric_limits<double>::quiet_NaN();
  const bool is_text = json.is_string() &&
                       absl::SimpleAtod(json.get<std::string>(), &value) &&
                       !std::isfinite(value);
  return is_text ? std::optional<double>(value) : std::nullopt;
}

void ReadMetrics(const std::string& field, JsonObjectReader* reader,
                 Metrics* metrics) {
  const Json* pairs = reader->Raw(field, /*required=*/true);
  if (pairs == nullptr) {
    return;
  }
  for (const Json& pair : *pairs) {
    const std::optional<double> score =
        pair.is_array() && pair.size() == 2 && pair[0].is_string()
            ? ScoreOf(pair[1])
            : std::nullopt;
    if (!score.has_value()) {
      reader->Fail(field, "should be pairs of a name and a number");
      return;
    }
    metrics->emplace_back(pair[0].get<std::string>(), *score);
  }
}

}  // namespace

Json StateToJson(const TrainingState& state) {
  Json json = {{"step", state.step},
               {"examples", state.examples},
               {"epoch", state.position.epoch},
               {"record", state.position.record},
               {"example", state.position.example},
               {"batch", state.position.batch},
               {"evaluated_step", state.evaluated_step},
               {"evaluation", MetricPairs(state.evaluation)},
               {"best_step", state.best_step},
               {"best", MetricPairs(state.best)},
               {"metrics_bytes", state.metrics_bytes}};
  if (state.improved_score.has_value()) {
    json["improved_score"] = *state.improved_score;
  }
  if (state.stale_evaluations > 0) {
    json["stale_evaluations"] = state.stale_evaluations;
  }
  if (state.scores_forgotten > 0) {
    json[kScoresForgotten] = state.scores_forgotten;
  }
  return json;
}

absl::StatusOr<TrainingState> StateFromJson(const Json& json,
                                            const std::string& where) {
  TrainingState state;
  JsonObjectReader reader(json, where);
  reader.Required("step", &state.step);
  reader.Required("examples", &state.examples);
  reader.Required("epoch", &state.position.epoch);
  reader.Required("record", &state.position.record);
  reader.Required("example", &state.position.example);
  reader.Required("batch", &state.position.batch);
  reader.Required("evaluated_step", &state.evaluated_step);
  ReadMetrics("evaluation", &reader, &state.evaluation);
  reader.Required("best_step", &state.best_step);
  ReadMetrics("best", &reader, &state.best);
  reader.Required("metrics_bytes", &state.metrics_bytes);
  double improved_score = 0;
  reader.Optional("improved_score", &improved_score);
  if (reader.Has("improved_score")) {
    state.improved_score = improved_score;
  }
  reader.Optional("stale_evaluations", &state.stale_evaluations);
  reader.Optional(kScoresForgotten, &state.scores_forgotten);
  ETC_RETURN_IF_ERROR(reader.Finish());
  return state;
}

bool SetScores(const Metrics& metrics, const MainMetric& main_metric,
               TrainingState* state) {
  state->evaluated_step = state->step;
  state->evaluation = metrics;
  const std::optional<double> now = FindMetric(metrics, main_metric.name);
  const std::optional<double> best = FindMetric(state->best, main_metric.name);
  const bool is_best = now.has_value() && (!best.has_value() ||
                                           !main_metric.IsBetter(*best, *now));
  if (is_best) {
    state->best_step = state->step;
    state->best = metrics;
  }
  return is_best;
}

void CountStale(const TrainConfig& train, const MainMetric& main_metric,
                const Metrics& metrics, TrainingState* state) {
  if (train.early_stopping == 0) {
    state->improved_score.reset();
    state->stale_evaluations = 0;
    return;
  }
  const std::optional<double> now = FindMetric(metrics, main_metric.name);
  const double sign = main_metric.lower_is_better ? -1 : 1;
  // Nothing was counted before it was asked for, which may be at a resume.
  const std::optional<double> before =
      state->improved_score.has_value()
          ? state->improved_score
          : FindMetric(state->best, main_metric.name);
  const bool improves =
      now.has_value() && std::isfinite(*now) &&
      (!before.has_value() || !std::isfinite(*before) ||
       sign * (*now - *before) > train.early_stopping_improvement);
  state->stale_evaluations = improves ? 0 : state->stale_evaluations + 1;
  if (improves) {
    state->improved_score = now;
  }
}

bool HasEndedEarly(const TrainConfig& train, const TrainingState& state) {
  return train.early_stopping > 0 &&
         state.stale_evaluations >= train.early_stopping;
}

namespace {

// Makes the best of `evaluated` by `main_metric`, of equal ones the latest,
// that of the state; none if none has that score. Returns it as text: "accuracy
// 0.5000 after 8 updates", or "".
std::string ChooseBest(const std::vector<RecordedCheckpoint>& evaluated,
                       const MainMetric& main_metric, TrainingState* state) {
  state->best_step = 0;
  state->best.clear();
  std::optional<double> best;
  const auto compare = [&](int64_t step, const Metrics& scores) {
    const std::optional<double> score = FindMetric(scores, main_metric.name);
    if (score.has_value() && !std::isnan(*score) &&
        (!best.has_value() || !main_metric.IsBetter(*best, *score))) {
      best = score;
      state->best_step = step;
      state->best = scores;
    }
  };
  for (const RecordedCheckpoint& checkpoint : evaluated) {
    compare(checkpoint.step, checkpoint.scores);
  }
  if (state->evaluated_step == state->step) {  // a kill may have come between
    compare(state->step, state->evaluation);
  }
  return best.has_value()
             ? absl::StrCat(main_metric.name, " ", FormatScore(*best),
                            " after ", Counted(state->best_step, "update"))
             : "";
}

// Chooses the best score by another metric than before. Returns a line about
// it.
std::string ChangeMetric(const std::vector<RecordedCheckpoint>& evaluated,
                         const MainMetric& main_metric, TrainingState* state) {
  const std::string best = ChooseBest(evaluated, main_metric, state);
  return best.empty()
             ? "the best score so far is forgotten: it was by another metric"
             : "the best score so far, by the other metric, is " + best;
}

// `reason`: ReasonToForget.
void ForgetEvaluations(const std::string& reason, TrainingState* state,
                       std::vector<std::string>* messages) {
  if (!state->best.empty()) {
    messages->push_back("the best score so far is forgotten: it was " + reason);
  }
  state->evaluated_step = 0;
  state->evaluation.clear();
  state->best_step = 0;
  state->best.clear();
  ++state->scores_forgotten;
}

// Returns true for settings that choose the records that are held out, of which
// some may have been trained on.
bool ChangesHeldOut(const RunPlan& plan, const std::string& field) {
  return field == "data.dev_fraction" || field == "data.dev_seed" ||
         field == "data.dev_records" ||
         (plan.evaluates_train_files &&
          (field == "data.dev" || field == "pretrain.development_one_in" ||
           field == "pretrain.max_sentences"));
}

// Returns true if `decides` is true of one of the changed fields.
bool AnyOf(const std::vector<SettingChange>& changes,
           absl::FunctionRef<bool(const std::string& field)> decides) {
  return absl::c_any_of(changes, [&](const SettingChange& change) {
    return decides(change.field);
  });
}

// Passes over the data that the run has made at its end.
double PassesOf(const RunPlan& plan, const TrainingState& state) {
  const int64_t to_come =
      (plan.num_steps - state.step) * plan.loader.batch_size;
  return static_cast<double>(state.examples + to_come) /
         static_cast<double>(plan.epoch_examples);
}

// Adds lines about changes that make passes, scores or inputs other than they
// seem.
void WarnOf(const std::vector<SettingChange>& changes, const RunPlan& plan,
            const TrainingState& state, std::vector<std::string>* messages) {
  if (state.step > 0 && AnyOf(changes, [](const std::string& field) {
        return field == "train.batch_size";
      })) {
    messages->push_back(
        absl::StrFormat("the run comes to %.2f passes over its data, since not "
                        "all of the %s so "
                        "far had this train.batch_size",
                        PassesOf(plan, state), Counted(state.step, "update")));
  }
  if (AnyOf(changes, [&](const std::string& field) {
        return ChangesHeldOut(plan, field);
      })) {
    messages->emplace_back(
        "warning: the run may have trained on some of the records that are "
        "held out now, which makes its scores too good");
  }
  if (AnyOf(changes, [](const std::string& field) {
        return field == "tokenizer.vocabulary";
      })) {
    messages->emplace_back(
        "warning: the model reads each id as the piece that it was in the "
        "vocabulary that the run began with: where ids are of other pieces "
        "now, begin a new run");
  }
}

// Returns true for settings of which another value makes the place in the
// training data that of other examples or batches.
bool ChangesPlace(const RunPlan& plan, const std::string& field) {
  return ChangesExamples(plan.example_settings, field) &&
         !absl::c_linear_search(plan.decoding_settings, field);
}

// Returns true for settings on which the scores of a model depend: the records
// that are evaluated, their examples, and the options of the task.
bool ChangesScores(const RunPlan& plan, const std::string& field) {
  constexpr std::array kTrainingAlone = {"data.train",
                                         "data.number of training records",
                                         "train.batch_size",
                                         "data.bucket_batches",
                                         "train.seed",
                                         "train.max_examples",
                                         "translation.max_tokens",
                                         "translation.max_sentences"};
  return field == "data.dev" ||
         (field == "data.train" && plan.evaluates_train_files) ||
         (ChangesExamples(plan.example_settings, field) &&
          !absl::c_linear_search(kTrainingAlone, field));
}

// Returns the difference between the scores so far and those to come; empty if
// the changes make none.
std::string ReasonToForget(const std::vector<SettingChange>& changes,
                           const RunPlan& plan) {
  if (AnyOf(changes, ChangesModel)) {
    return "of another model";
  }
  std::vector<std::string> fields;
  for (const SettingChange& change : changes) {
    if (ChangesScores(plan, change.field)) {
      fields.push_back(change.field);
    }
  }
  return fields.empty()
             ? ""
             : "with another " + absl::StrJoin(fields, " and another ");
}

}  // namespace

absl::StatusOr<ChangedRun> GoOnWithChanges(
    const std::vector<SettingChange>& changes, const RunPlan& plan,
    const MainMetric& main_metric,
    const std::vector<RecordedCheckpoint>& evaluated, TrainingState* state) {
  if (state->step > plan.num_steps) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the run has made ", state->step,
        " updates already, but train.steps or train.epochs come to ",
        plan.num_steps));
  }
  ChangedRun run = {.changes_model = AnyOf(changes, ChangesModel)};
  std::vector<std::string>& messages = run.messages;
  for (const SettingChange& change : changes) {
    messages.push_back(absl::StrCat("changed: ", change.field, ", from ",
                                    change.was, " to ", change.is));
  }
  const std::string reason = ReasonToForget(changes, plan);
  run.forgets_scores = !reason.empty();
  run.forgets_optimizer = AnyOf(changes, [](const std::string& field) {
    return field == "optimizer.type";
  });
  const bool other_metric = AnyOf(changes, [](const std::string& field) {
    return field == "train.main_metric" ||
           field == "train.main_metric_direction";
  });
  if (AnyOf(changes,
            [&](const std::string& field) {
              return ChangesPlace(plan, field);
            }) &&
      state->position != LoaderPosition{.epoch = state->position.epoch}) {
    state->position = {.epoch = state->position.epoch + 1};
    messages.emplace_back(
        "training goes on with a new pass over the data, because the place "
        "where it stopped was in other examples or batches");
  }
  if (run.forgets_optimizer) {
    messages.emplace_back(
        "the optimizer begins anew: its moments were of another "
        "optimizer.type");
  }
  if (run.forgets_scores) {
    ForgetEvaluations(reason, state, &messages);
  }
  WarnOf(changes, plan, *state, &messages);
  if (other_metric && !run.forgets_scores) {
    messages.push_back(ChangeMetric(evaluated, main_metric, state));
    run.forgets_scores = state->best.empty();
  }
  if (run.forgets_scores || other_metric) {
    state->improved_score.reset();
    state->stale_evaluations = 0;
  }
  return run;
}

std::string ReplaceLostBest(const MainMetric& main_metric,
                            const std::vector<RecordedCheckpoint>& evaluated,
                            TrainingState* state) {
  const std::string lost =
      absl::StrCat("the checkpoint of the best score, after ",
                   Counted(state->best_step, "update"), ", is not there: ");
  const std::string best = ChooseBest(evaluated, main_metric, state);
  return best.empty() ? lost + "the score is forgotten"
                      : lost + "the best of those that are is " + best;
}

absl::Status WriteTrainingState(const TrainingStateFile& contents,
                                const std::string& path) {
  NamedTensors tensors;
  for (const auto& [name, tensor] : contents.optimizer) {
    tensors.emplace(kOptimizer + name, tensor);
  }
  std::map<std::string, std::string> metadata = {
      {kState, JsonText(StateToJson(contents.state))},
      {kSettings, JsonText(contents.settings)},
      {kDevice, contents.device}};
  if (!contents.program.version.empty()) {
    metadata[kProgram] = JsonText(ProgramVersionToJson(contents.program));
  }
  return WriteTensors(path, tensors, metadata);
}

namespace {

// The program that wrote the file; a library's run has none.
absl::Status ReadProgram(const TensorReader& reader, ProgramVersion* program) {
  const auto found = reader.metadata().find(kProgram);
  if (found == reader.metadata().end()) {
    return absl::OkStatus();
  }
  const std::string where = absl::StrCat(reader.path(), ": ", kProgram);
  ETC_ASSIGN_OR_RETURN(const Json json, ParseJson(found->second, where));
  JsonObjectReader fields(json, where);
  fields.Required("version", &program->version);
  fields.Optional("commit", &program->commit);
  return fields.Finish(JsonObjectReader::UnknownFields::kIgnore);
}

// A text in the metadata of the file.
absl::StatusOr<std::string> TextOf(const TensorReader& reader,
                                   const char* key) {
  const auto found = reader.metadata().find(key);
  if (found == reader.metadata().end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        reader.path(), " should have \"", key, "\" in its metadata"));
  }
  return found->second;
}

absl::StatusOr<Json> JsonOf(const TensorReader& reader, const char* key) {
  ETC_ASSIGN_OR_RETURN(const std::string text, TextOf(reader, key));
  return ParseJson(text, absl::StrCat(reader.path(), ": ", key));
}

}  // namespace

absl::StatusOr<TrainingStateFile> ReadTrainingState(const std::string& path) {
  ETC_ASSIGN_OR_RETURN(const TensorReader reader, TensorReader::Open(path));
  TrainingStateFile contents;
  ETC_ASSIGN_OR_RETURN(const Json state, JsonOf(reader, kState));
  ETC_ASSIGN_OR_RETURN(contents.state,
                       StateFromJson(state, absl::StrCat(path, ": ", kState)));
  ETC_ASSIGN_OR_RETURN(contents.settings, JsonOf(reader, kSettings));
  ETC_ASSIGN_OR_RETURN(contents.device, TextOf(reader, kDevice));
  ETC_RETURN_IF_ERROR(ReadProgram(reader, &contents.program));
  for (const std::string& name : reader.Names()) {
    ETC_ASSIGN_OR_RETURN(torch::Tensor tensor, reader.Read(name));
    contents.optimizer.emplace(absl::StripPrefix(name, kOptimizer),
                               std::move(tensor));
  }
  return contents;
}

absl::Status WriteStateAfterEvaluation(const EvaluatedState& evaluated,
                                       const std::string& path) {
  Json json = StateToJson(evaluated.state);
  json[kSettings] = evaluated.settings;
  return WriteSealedJson(path, std::move(json));
}

absl::StatusOr<std::optional<EvaluatedState>> ReadStateAfterEvaluation(
    const std::string& path) {
  absl::StatusOr<Json> json = ReadSealedJson(path);
  if (absl::IsNotFound(json.status())) {
    return std::nullopt;
  }
  ETC_RETURN_IF_ERROR(json.status());
  EvaluatedState evaluated;
  const auto settings = json->find(kSettings);
  if (settings == json->end()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " should have \"", kSettings, "\""));
  }
  evaluated.settings = std::move(*settings);
  json->erase(settings);
  ETC_ASSIGN_OR_RETURN(evaluated.state, StateFromJson(*json, path));
  return evaluated;
}

absl::StatusOr<Json> ReadCheckpointSettings(const std::string& directory) {
  ETC_ASSIGN_OR_RETURN(
      std::optional<EvaluatedState> evaluated,
      ReadStateAfterEvaluation(absl::StrCat(directory, "/", kEvaluationFile)));
  if (evaluated.has_value()) {
    return std::move(evaluated->settings);
  }
  ETC_ASSIGN_OR_RETURN(
      const TensorReader reader,
      TensorReader::Open(absl::StrCat(directory, "/", kTrainingStateFile)));
  return JsonOf(reader, kSettings);
}

}  // namespace etc
