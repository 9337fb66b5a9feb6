#include "tasks/train/training_state.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "etc/config.h"
#include "etc/formats/file.h"
#include "etc/formats/json_reader.h"
#include "etc/formats/status_macros.h"

namespace etc {
namespace {

using Json = nlohmann::json;

// Keys of the file's metadata, and the prefix of its tensors.
constexpr char kState[] = "training_state";
constexpr char kSettings[] = "settings";
constexpr char kOptimizer[] = "optimizer.";

// Pairs, because an object would not keep their order.
Json MetricsToJson(const Metrics& metrics) {
  Json pairs = Json::array();
  for (const auto& [name, value] : metrics) {
    pairs.push_back({name, value});
  }
  return pairs;
}

void ReadMetrics(const std::string& field, JsonObjectReader* reader,
                 Metrics* metrics) {
  const Json* pairs = reader->Raw(field, /*required=*/true);
  if (pairs == nullptr) {
    return;
  }
  for (const Json& pair : *pairs) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() ||
        !pair[1].is_number()) {
      reader->Fail(field, "should be pairs of a name and a number");
      return;
    }
    metrics->emplace_back(pair[0].get<std::string>(), pair[1].get<double>());
  }
}

Json StateToJson(const TrainingState& state) {
  return {{"step", state.step},
          {"epoch", state.position.epoch},
          {"record", state.position.record},
          {"example", state.position.example},
          {"batch", state.position.batch},
          {"evaluated_step", state.evaluated_step},
          {"evaluation", MetricsToJson(state.evaluation)},
          {"best_step", state.best_step},
          {"best", MetricsToJson(state.best)},
          {"metrics_bytes", state.metrics_bytes}};
}

absl::StatusOr<TrainingState> StateFromJson(const Json& json,
                                            const std::string& where) {
  TrainingState state;
  JsonObjectReader reader(json, where);
  reader.Required("step", &state.step);
  reader.Required("epoch", &state.position.epoch);
  reader.Required("record", &state.position.record);
  reader.Required("example", &state.position.example);
  reader.Required("batch", &state.position.batch);
  reader.Required("evaluated_step", &state.evaluated_step);
  ReadMetrics("evaluation", &reader, &state.evaluation);
  reader.Required("best_step", &state.best_step);
  ReadMetrics("best", &reader, &state.best);
  reader.Required("metrics_bytes", &state.metrics_bytes);
  ETC_RETURN_IF_ERROR(reader.Finish());
  return state;
}

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value.has_value() ? Json(*value) : Json();
}

}  // namespace

Json RunSettings(const FinetuneConfig& config, int64_t seed,
                 int64_t num_records) {
  const TrainConfig& train = config.train;
  Json model = Json::parse(EtcConfigToJson(config.model));
  model.erase("residual_attention");  // it has a field of its own
  return {{"task", config.task},
          {"model", std::move(model)},
          {"init", config.init},
          {"residual_attention", config.residual_attention},
          {"tokenizer",
           {{"type", config.tokenizer.type},
            {"vocabulary", config.tokenizer.vocabulary},
            {"lower_case", config.tokenizer.lower_case},
            {"split_punctuation", config.tokenizer.split_punctuation}}},
          {"data",
           {{"train", config.data.train},
            {"number of training records", num_records},
            {"dev", config.data.dev},
            {"max_long_length", config.data.max_long_length},
            {"max_global_length", config.data.max_global_length},
            {"bucket_batches", config.data.bucket_batches},
            {"on_bad_record", config.data.on_bad_record}}},
          {"optimizer",
           {{"type", config.optimizer.type},
            {"weight_decay", config.optimizer.weight_decay},
            {"beta1", config.optimizer.beta1},
            {"beta2", config.optimizer.beta2},
            {"epsilon", config.optimizer.epsilon},
            {"clip_norm", config.optimizer.clip_norm}}},
          {"schedule",
           {{"warmup_proportion", config.schedule.warmup_proportion},
            {"poly_power", config.schedule.poly_power},
            {"start_warmup_step", config.schedule.start_warmup_step}}},
          {"train",
           {{"learning_rate", train.learning_rate},
            {"batch_size", train.batch_size},
            {"micro_batch_size", train.micro_batch_size},
            {"epochs", train.epochs},
            {"steps", OrNull(train.steps)},
            {"num_train_examples", OrNull(train.num_train_examples)},
            {"score_storage", train.score_storage},
            {"seed", seed}}},
          {"task_options", config.task_options}};
}

absl::Status CheckSameSettings(const Json& then, const Json& now) {
  const Json flat_then = then.flatten();
  const Json flat_now = now.flatten();
  std::set<std::string> fields;
  for (const Json* flat : {&flat_then, &flat_now}) {
    for (const auto& [field, value] : flat->items()) {
      fields.insert(field);
    }
  }
  const auto text = [](const Json& flat, const std::string& field) {
    const auto found = flat.find(field);
    return found == flat.end() ? std::string("absent") : found->dump();
  };
  for (const std::string& field : fields) {
    const std::string was = text(flat_then, field);
    const std::string is = text(flat_now, field);
    if (was != is) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the run cannot go on with another ",
          absl::StrReplaceAll(absl::StripPrefix(field, "/"), {{"/", "."}}),
          ": it began with ", was, ", now it is ", is));
    }
  }
  return absl::OkStatus();
}

absl::Status WriteTrainingState(const TrainingStateFile& contents,
                                const std::string& path) {
  NamedTensors tensors;
  for (const auto& [name, tensor] : contents.optimizer) {
    tensors.emplace(kOptimizer + name, tensor);
  }
  return WriteTensors(path, tensors,
                      {{kState, StateToJson(contents.state).dump()},
                       {kSettings, contents.settings.dump()}});
}

absl::StatusOr<TrainingStateFile> ReadTrainingState(const std::string& path) {
  ETC_ASSIGN_OR_RETURN(const TensorReader reader, TensorReader::Open(path));
  TrainingStateFile contents;
  for (const char* key : {kState, kSettings}) {
    if (reader.metadata().count(key) == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, " should have \"", key, "\" in its metadata"));
    }
    const std::string where = absl::StrCat(path, ": ", key);
    ETC_ASSIGN_OR_RETURN(Json json,
                         ParseJson(reader.metadata().at(key), where));
    if (key == kState) {
      ETC_ASSIGN_OR_RETURN(contents.state, StateFromJson(json, where));
    } else {
      contents.settings = std::move(json);
    }
  }
  for (const std::string& name : reader.Names()) {
    ETC_ASSIGN_OR_RETURN(torch::Tensor tensor, reader.Read(name));
    contents.optimizer.emplace(absl::StripPrefix(name, kOptimizer),
                               std::move(tensor));
  }
  return contents;
}

absl::Status WriteStateAfterEvaluation(const TrainingState& state,
                                       const std::string& path) {
  return WriteFileAtomically(path, StateToJson(state).dump(2) + "\n");
}

absl::StatusOr<std::optional<TrainingState>> ReadStateAfterEvaluation(
    const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (absl::IsNotFound(text.status())) {
    return std::nullopt;
  }
  ETC_RETURN_IF_ERROR(text.status());
  ETC_ASSIGN_OR_RETURN(const Json json, ParseJson(*text, path));
  ETC_ASSIGN_OR_RETURN(TrainingState state, StateFromJson(json, path));
  return state;
}

}  // namespace etc
