#include "tasks/train/config.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "attention/kernels/bfloat16.h"
#include "etc/formats/json_reader.h"
#include "etc/formats/status_macros.h"
#include "etc/weights/source_files.h"

namespace etc {
namespace {

using Json = nlohmann::json;

// --- Rules for single fields -----------------------------------------------

template <typename T>
void CheckAtLeast(const std::string& field, T value, T lowest,
                  JsonObjectReader* reader) {
  if (!(value >= lowest)) {
    reader->Fail(
        field, absl::StrCat("should be at least ", lowest, ", but is ", value));
  }
}

void CheckAtLeast(const std::string& field, const std::optional<int64_t>& value,
                  int64_t lowest, JsonObjectReader* reader) {
  if (value.has_value()) {
    CheckAtLeast(field, *value, lowest, reader);
  }
}

void CheckPositive(const std::string& field, double value,
                   JsonObjectReader* reader) {
  if (!(value > 0)) {
    reader->Fail(field, absl::StrCat("should be more than 0, but is ", value));
  }
}

// In [0, 1), or [0, 1] if `one_too`.
void CheckShare(const std::string& field, double value, bool one_too,
                JsonObjectReader* reader) {
  if (!(value >= 0 && (one_too ? value <= 1 : value < 1))) {
    reader->Fail(field, absl::StrCat("should be in [0, 1", one_too ? "]" : ")",
                                     ", but is ", value));
  }
}

void CheckOneOf(const std::string& field, const std::string& value,
                const std::vector<std::string>& names,
                JsonObjectReader* reader) {
  if (std::find(names.begin(), names.end(), value) == names.end()) {
    const std::string nearest = NearestName(value, names);
    reader->Fail(
        field, absl::StrCat("should be \"", absl::StrJoin(names, "\" or \""),
                            "\", but is \"", value, "\"",
                            nearest.empty() ? ""
                                            : absl::StrCat("; did you mean \"",
                                                           nearest, "\"?")));
  }
}

// --- One function for each object ------------------------------------------

void ReadTokenizer(JsonObjectReader* reader, TokenizerConfig* config) {
  reader->Optional("type", &config->type);
  reader->Optional("vocabulary", &config->vocabulary);
  reader->Optional("lower_case", &config->lower_case);
  reader->Optional("split_punctuation", &config->split_punctuation);
  CheckOneOf("type", config->type, {"wordpiece", "sentencepiece"}, reader);
}

void ReadData(JsonObjectReader* reader, DataConfig* config) {
  reader->Optional("train", &config->train);
  reader->Optional("dev", &config->dev);
  reader->Optional("max_long_length", &config->max_long_length);
  reader->Optional("max_global_length", &config->max_global_length);
  reader->Optional("workers", &config->workers);
  reader->Optional("cache_megabytes", &config->cache_megabytes);
  reader->Optional("bucket_batches", &config->bucket_batches);
  reader->Optional("on_bad_record", &config->on_bad_record);
  CheckAtLeast<int64_t>("max_long_length", config->max_long_length, 1, reader);
  CheckAtLeast<int64_t>("max_global_length", config->max_global_length, 1,
                        reader);
  CheckAtLeast<int64_t>("workers", config->workers, 1, reader);
  CheckAtLeast<int64_t>("cache_megabytes", config->cache_megabytes, 0, reader);
  CheckAtLeast<int64_t>("bucket_batches", config->bucket_batches, 1, reader);
  CheckOneOf("on_bad_record", config->on_bad_record, {"error", "skip"}, reader);
}

void ReadOptimizer(JsonObjectReader* reader, OptimizerConfig* config) {
  reader->Optional("type", &config->type);
  reader->Optional("weight_decay", &config->weight_decay);
  reader->Optional("beta1", &config->beta1);
  reader->Optional("beta2", &config->beta2);
  reader->Optional("epsilon", &config->epsilon);
  reader->Optional("clip_norm", &config->clip_norm);
  CheckOneOf("type", config->type, {"bert_adamw", "lamb", "adamw"}, reader);
  CheckAtLeast<double>("weight_decay", config->weight_decay, 0, reader);
  CheckShare("beta1", config->beta1, /*one_too=*/false, reader);
  CheckShare("beta2", config->beta2, /*one_too=*/false, reader);
  CheckPositive("epsilon", config->epsilon, reader);
  CheckAtLeast<double>("clip_norm", config->clip_norm, 0, reader);
}

void ReadSchedule(JsonObjectReader* reader, ScheduleConfig* config) {
  reader->Optional("warmup_proportion", &config->warmup_proportion);
  reader->Optional("poly_power", &config->poly_power);
  reader->Optional("start_warmup_step", &config->start_warmup_step);
  CheckShare("warmup_proportion", config->warmup_proportion, /*one_too=*/true,
             reader);
  CheckAtLeast<double>("poly_power", config->poly_power, 0, reader);
  CheckAtLeast<int64_t>("start_warmup_step", config->start_warmup_step, 0,
                        reader);
}

void CheckSeeds(const std::vector<int64_t>& seeds, JsonObjectReader* reader) {
  if (seeds.empty()) {
    reader->Fail("seeds", "should hold at least one number, but is empty");
  }
  std::set<int64_t> seen;
  for (const int64_t seed : seeds) {
    CheckAtLeast<int64_t>("seeds", seed, 0, reader);
    if (!seen.insert(seed).second) {
      reader->Fail("seeds", absl::StrCat("should hold each number once, but ",
                                         seed, " is there twice"));
    }
  }
}

void ReadTrain(JsonObjectReader* reader, TrainConfig* config) {
  reader->Optional("learning_rate", &config->learning_rate);
  reader->Optional("batch_size", &config->batch_size);
  reader->Optional("micro_batch_size", &config->micro_batch_size);
  reader->Optional("epochs", &config->epochs);
  reader->Optional("steps", &config->steps);
  reader->Optional("num_train_examples", &config->num_train_examples);
  reader->Optional("evaluate_every", &config->evaluate_every);
  reader->Optional("checkpoint_every", &config->checkpoint_every);
  reader->Optional("evaluation_batch_size", &config->evaluation_batch_size);
  reader->Optional("seeds", &config->seeds);
  reader->Optional("threads", &config->threads);
  reader->Optional("precision", &config->precision);
  CheckOneOf("precision", config->precision, {"fp32", "bf16"}, reader);
  reader->Optional("score_storage", &config->score_storage);
  CheckOneOf("score_storage", config->score_storage,
             {"reverse", "recompute", "store"}, reader);
  CheckPositive("learning_rate", config->learning_rate, reader);
  CheckAtLeast<int64_t>("batch_size", config->batch_size, 1, reader);
  CheckAtLeast<int64_t>("micro_batch_size", config->micro_batch_size, 1,
                        reader);
  if (config->micro_batch_size > config->batch_size) {
    reader->Fail(
        "micro_batch_size",
        absl::StrCat("should be at most batch_size (", config->batch_size,
                     "), but is ", config->micro_batch_size));
  }
  CheckPositive("epochs", config->epochs, reader);
  CheckAtLeast("steps", config->steps, 1, reader);
  CheckAtLeast("num_train_examples", config->num_train_examples, 1, reader);
  CheckAtLeast("evaluate_every", config->evaluate_every, 0, reader);
  CheckAtLeast<int64_t>("checkpoint_every", config->checkpoint_every, 0,
                        reader);
  CheckAtLeast<int64_t>("evaluation_batch_size", config->evaluation_batch_size,
                        1, reader);
  CheckSeeds(config->seeds, reader);
  CheckAtLeast<int64_t>("threads", config->threads, 0, reader);
}

// Reads the object `field` of `parent`, if it is there, with `read`.
template <typename Config>
absl::Status ReadObject(const std::string& field,
                        void (*read)(JsonObjectReader*, Config*),
                        JsonObjectReader* parent, Config* config) {
  const Json* object = parent->Raw(field, /*required=*/false);
  if (object == nullptr) {
    return absl::OkStatus();
  }
  JsonObjectReader reader(*object, parent->Where(field));
  read(&reader, config);
  return reader.Finish();
}

// --- The model --------------------------------------------------------------

// What the fields of the object "model" decide over: a preset, a file, what the
// weights to start from are of or are lifted to, or the defaults.
absl::StatusOr<EtcConfig> BaseOfModel(const std::string& preset,
                                      const std::string& path,
                                      const std::string& init,
                                      JsonObjectReader* reader,
                                      std::vector<std::string>* warnings) {
  if (!preset.empty()) {
    absl::StatusOr<EtcConfig> config = EtcConfigPreset(preset);
    if (!config.ok()) {
      reader->Fail("preset", absl::StrCat("should be \"base\" or \"large\", "
                                          "but is \"",
                                          preset, "\""));
      return reader->Finish(JsonObjectReader::UnknownFields::kIgnore);
    }
    return config;
  }
  if (path.empty() && init.empty()) {
    return EtcConfig();
  }
  if (path.empty()) {
    ETC_ASSIGN_OR_RETURN(const SourceConfig source, ReadSourceConfig(init));
    warnings->insert(warnings->end(), source.warnings.begin(),
                     source.warnings.end());
    return InitialConfig(source);
  }
  std::vector<std::string> unknown_fields;
  absl::StatusOr<EtcConfig> config = ReadEtcConfig(path, &unknown_fields);
  for (const std::string& field : unknown_fields) {
    warnings->push_back(
        absl::StrCat(path, ": unknown field \"", field, "\" is ignored"));
  }
  return config;
}

absl::StatusOr<EtcConfig> ReadModel(const Json& json, const std::string& where,
                                    const std::string& init,
                                    std::vector<std::string>* warnings) {
  JsonObjectReader reader(json, where);
  std::string preset;
  std::string path;
  reader.Optional("preset", &preset);
  reader.Optional("path", &path);
  if (!preset.empty() && !path.empty()) {
    reader.Fail("path", "should not be given together with preset");
  }
  ETC_RETURN_IF_ERROR(reader.Finish(JsonObjectReader::UnknownFields::kIgnore));
  ETC_ASSIGN_OR_RETURN(const EtcConfig base,
                       BaseOfModel(preset, path, init, &reader, warnings));

  Json merged = Json::parse(EtcConfigToJson(base));
  for (const auto& [field, ignored] : merged.items()) {
    reader.Raw(field, /*required=*/false);
  }
  ETC_RETURN_IF_ERROR(reader.Finish());
  merged.update(json);
  merged.erase("preset");
  merged.erase("path");
  std::vector<std::string> unknown_fields;
  ETC_ASSIGN_OR_RETURN(EtcConfig config,
                       EtcConfigFromJson(merged, where, &unknown_fields));
  if (config.vocab_size == 0) {
    reader.Fail("vocab_size", "should be given, but is absent");
    ETC_RETURN_IF_ERROR(reader.Finish());
  }
  return config;
}

absl::Status ReadModelAndResidual(JsonObjectReader* reader,
                                  FinetuneConfig* config) {
  const Json* model = reader->Raw("model", /*required=*/config->init.empty());
  if (model == nullptr && config->init.empty()) {
    return reader->Finish(JsonObjectReader::UnknownFields::kIgnore);
  }
  ETC_ASSIGN_OR_RETURN(
      config->model,
      ReadModel(model == nullptr ? Json::object() : *model,
                reader->Where("model"), config->init, &config->warnings));
  config->residual_attention = config->model.residual_attention;
  reader->Optional("residual_attention", &config->residual_attention);
  CheckOneOf("residual_attention", config->residual_attention,
             {"off", "sum", "mean"}, reader);
  config->model.residual_attention = config->residual_attention;
  return absl::OkStatus();
}

// --- The machine ------------------------------------------------------------

void WarnOfPrecision(FinetuneConfig* config) {
  if (config->train.precision != "bf16") {
    return;
  }
  switch (kernels::Bfloat16ProductsOfThisCpu()) {
    case kernels::Bfloat16Products::kFast:
      return;
    case kernels::Bfloat16Products::kSlow:
      config->warnings.push_back(
          "train.precision is bf16, which is slower than fp32 on this CPU: it "
          "has neither AVX512-BF16 nor AMX");
      return;
    case kernels::Bfloat16Products::kNone:
      config->warnings.push_back(
          "train.precision is bf16, but fp32 is used: this CPU has no AVX-512");
      return;
  }
}

// What the configuration says, and for the rest what lies beside the weights to
// start from.
absl::Status TakeTokenizer(JsonObjectReader* reader, FinetuneConfig* config) {
  TokenizerConfig& tokenizer = config->tokenizer;
  TokenizerFiles found;
  if (!config->init.empty()) {
    ETC_ASSIGN_OR_RETURN(found, FindTokenizer(config->init));
  }
  if (!found.type.empty()) {
    tokenizer = {found.type, /*vocabulary=*/"", found.lower_case,
                 found.split_punctuation};
  }
  ETC_RETURN_IF_ERROR(
      ReadObject("tokenizer", ReadTokenizer, reader, &tokenizer));
  if (tokenizer.vocabulary.empty() && tokenizer.type == found.type) {
    tokenizer.vocabulary = found.vocabulary;
  }
  return absl::OkStatus();
}

// --- Overrides --------------------------------------------------------------

// Applies one "train.learning_rate=3e-5" to `json`. Whether the field exists is
// found out when the result is read.
absl::Status ApplyOverride(const std::string& text, Json* json) {
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(text, absl::MaxSplits('=', 1));
  const std::vector<std::string> fields = absl::StrSplit(parts.first, '.');
  if (text.find('=') == std::string::npos ||
      std::count(fields.begin(), fields.end(), "") > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--set ", text,
                     " should be a field and its value, as in "
                     "train.learning_rate=3e-5"));
  }
  Json* object = json;
  for (size_t i = 0; i + 1 < fields.size(); ++i) {
    if (!object->is_object()) {
      break;
    }
    Json& next = (*object)[fields[i]];
    if (next.is_null()) {
      next = Json::object();
    }
    object = &next;
  }
  if (!object->is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--set ", text,
        " reaches into a value that is no object: ", object->dump()));
  }
  Json value = Json::parse(parts.second, nullptr, /*allow_exceptions=*/false);
  (*object)[fields.back()] =
      value.is_discarded() ? Json(parts.second) : std::move(value);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FinetuneConfig> FinetuneConfigFromJson(
    Json json, const std::string& source) {
  FinetuneConfig config;
  config.source = source;
  config.json = std::move(json);
  JsonObjectReader reader(config.json, source);
  reader.Required("task", &config.task);
  reader.Optional("init", &config.init);
  reader.Optional("output", &config.output);
  // Without a task, init and output of the right type the rest is guesswork.
  ETC_RETURN_IF_ERROR(reader.Finish(JsonObjectReader::UnknownFields::kIgnore));

  ETC_RETURN_IF_ERROR(TakeTokenizer(&reader, &config));
  ETC_RETURN_IF_ERROR(ReadObject("data", ReadData, &reader, &config.data));
  ETC_RETURN_IF_ERROR(
      ReadObject("optimizer", ReadOptimizer, &reader, &config.optimizer));
  ETC_RETURN_IF_ERROR(
      ReadObject("schedule", ReadSchedule, &reader, &config.schedule));
  ETC_RETURN_IF_ERROR(ReadObject("train", ReadTrain, &reader, &config.train));
  WarnOfPrecision(&config);
  if (const Json* options = reader.Raw(config.task, /*required=*/false)) {
    config.task_options = *options;
  }
  // Unknown fields are reported before the model's files are looked for.
  for (const char* field : {"model", "residual_attention"}) {
    reader.Raw(field, /*required=*/false);
  }
  ETC_RETURN_IF_ERROR(reader.Finish());
  ETC_RETURN_IF_ERROR(ReadModelAndResidual(&reader, &config));
  ETC_RETURN_IF_ERROR(reader.Finish());
  return config;
}

absl::StatusOr<FinetuneConfig> ReadFinetuneConfig(
    const std::string& path, const std::vector<std::string>& overrides) {
  ETC_ASSIGN_OR_RETURN(Json json, ReadJsonFile(path));
  for (const std::string& override_text : overrides) {
    ETC_RETURN_IF_ERROR(ApplyOverride(override_text, &json));
  }
  return FinetuneConfigFromJson(
      std::move(json),
      overrides.empty() ? path : absl::StrCat(path, " with --set"));
}

}  // namespace etc
