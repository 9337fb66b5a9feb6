#include "tasks/train/training_state.h"

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/counted.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/status_macros.h"
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
  return json;
}

absl::StatusOr<TrainingState> StateFromJson(const Json& json,
                                            const std::string& where) {
  // Counts up to it are exact in JSON, and far from an overflow.
  constexpr int64_t kMost = int64_t{1} << 53;
  TrainingState state;
  JsonObjectReader reader(json, where);
  const auto read = [&reader](const char* field, int64_t most, int64_t* value) {
    reader.Required(field, value);
    if (*value < 0 || *value > most) {
      reader.Fail(field, absl::StrCat("should be from 0 to ", most, ", but is ",
                                      *value));
    }
  };
  read("step", kMost, &state.step);
  read("examples", kMost, &state.examples);
  read("epoch", kMost, &state.position.epoch);
  read("record", kMost, &state.position.record);
  read("example", kMost, &state.position.example);
  read("batch", kMost, &state.position.batch);
  read("evaluated_step", state.step, &state.evaluated_step);
  ReadMetrics("evaluation", &reader, &state.evaluation);
  read("best_step", state.step, &state.best_step);
  ReadMetrics("best", &reader, &state.best);
  read("metrics_bytes", kMost, &state.metrics_bytes);
  double improved_score = 0;
  reader.Optional("improved_score", &improved_score);
  if (reader.Has("improved_score")) {
    state.improved_score = improved_score;
  }
  if (reader.Has("stale_evaluations")) {
    read("stale_evaluations", kMost, &state.stale_evaluations);
  }
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

// Passes over the data that the run has made at its end.
double PassesOf(const RunPlan& plan, const TrainingState& state) {
  const int64_t to_come =
      (plan.num_steps - state.step) * plan.loader.batch_size;
  return static_cast<double>(state.examples + to_come) /
         static_cast<double>(plan.epoch_examples);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> GoOnWithChanges(
    const std::vector<SettingChange>& changes, const RunPlan& plan,
    TrainingState* state) {
  if (state->step > plan.num_steps) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the run has made ", state->step,
        " updates already, but train.steps or train.epochs come to ",
        plan.num_steps));
  }
  std::vector<std::string> messages;
  bool has_other_data = false;
  bool has_other_batches = false;
  for (const SettingChange& change : changes) {
    messages.push_back(absl::StrCat("changed: ", change.field, ", from ",
                                    change.was, " to ", change.is));
    has_other_data = has_other_data ||
                     absl::c_linear_search(kTrainingDataFields, change.field);
    has_other_batches = has_other_batches || change.field == "train.batch_size";
  }
  if (has_other_data &&
      state->position != LoaderPosition{.epoch = state->position.epoch}) {
    state->position = {.epoch = state->position.epoch + 1};
    messages.emplace_back(
        "training goes on with a new pass over the data, because the place "
        "where it stopped was in other examples or batches");
  }
  if (has_other_batches && state->step > 0) {
    messages.push_back(absl::StrFormat(
        "the run comes to %.2f passes over its data, since not "
        "all of the %s so far had this train.batch_size",
        PassesOf(plan, *state), Counted(state->step, "update")));
  }
  return messages;
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
  return fields.status();
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
