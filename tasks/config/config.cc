#include "tasks/config/config.h"

#include <filesystem>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/file_operations.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "etc/weights/source_config.h"
#include "etc/weights/tokenizer_files.h"
#include "etc/weights/vocabulary_size.h"
#include "nlohmann/json.hpp"
#include "tasks/config/config_fields.h"
#include "tasks/config/device_choice.h"
#include "tasks/config/grid.h"
#include "tasks/output/find_checkpoint.h"

namespace etc {
namespace {

using Json = nlohmann::json;

// Replaces what a preset guesses by what the weights to start from have. Those
// that cannot be read are reported where they are loaded.
void TakeGuessedSizes(const std::string& init, EtcConfig* config) {
  const absl::StatusOr<SourceConfig> source = ReadSourceConfig(init);
  if (!source.ok()) {
    return;
  }
  const EtcConfig& from = source->config;
  if (from.vocab_size > 0) {
    config->vocab_size = from.vocab_size;
  }
  if (from.relative_pos_max_distance == config->relative_pos_max_distance) {
    config->relative_vocab_size = from.relative_vocab_size;
  }
}

// The configuration that the fields of the object "model" override: a preset, a
// file, that of the weights to start from (lifted, if they are BERT's and the
// model has long tokens), or the defaults.
absl::StatusOr<EtcConfig> BaseOfModel(const ModelOrigin& origin,
                                      const std::string& init,
                                      JsonObjectReader* reader,
                                      std::vector<std::string>* warnings) {
  const auto& [preset, path] = origin;
  if (!preset.empty()) {
    absl::StatusOr<EtcConfig> config = EtcConfigPreset(preset);
    if (!config.ok()) {
      reader->Fail("preset", config.status().message());
      return reader->status();
    }
    if (GuessesVocabularies(preset) && !init.empty()) {
      TakeGuessedSizes(init, &*config);
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
    bool has_long_tokens = true;
    reader->Optional("has_long_tokens", &has_long_tokens);
    return has_long_tokens ? InitialConfig(source) : source.config;
  }
  ETC_ASSIGN_OR_RETURN(const Json fields, ReadJsonFile(path));
  // BERT's name of segment_vocab_size, which its files always have.
  if (fields.is_object() && fields.contains("type_vocab_size") &&
      !fields.contains("segment_vocab_size")) {
    ETC_ASSIGN_OR_RETURN(const SourceConfig bert,
                         BertConfigFromJson(fields, path));
    return bert.config;
  }
  std::vector<std::string> unknown_fields;
  absl::StatusOr<EtcConfig> config =
      EtcConfigFromJson(fields, path, &unknown_fields);
  for (const std::string& field : unknown_fields) {
    warnings->push_back(
        absl::StrCat(path, ": unknown field \"", field, "\" is ignored"));
  }
  return config;
}

}  // namespace

absl::StatusOr<EtcConfig> ReadConfigModel(const Json& json,
                                          const std::string& where,
                                          const std::string& init,
                                          std::vector<std::string>* warnings) {
  JsonObjectReader reader(json, where);
  ModelOrigin origin;
  ReadFields(&reader, &origin);
  if (!origin.preset.empty() && !origin.path.empty()) {
    reader.Fail("path", "should not be given together with preset");
  }
  ETC_RETURN_IF_ERROR(reader.status());
  ETC_ASSIGN_OR_RETURN(const EtcConfig base,
                       BaseOfModel(origin, init, &reader, warnings));

  Json merged = Json::parse(EtcConfigToJson(base));
  for (const auto& [field, ignored] : merged.items()) {
    reader.Raw(field, /*required=*/false);
  }
  ETC_RETURN_IF_ERROR(reader.Finish());
  // Two names of one choice, of which one may be given.
  if (json.contains("sublayer") || json.contains("use_pre_activation_order")) {
    merged.erase("sublayer");
    merged.erase("use_pre_activation_order");
  }
  merged.update(json);
  merged.erase("preset");
  merged.erase("path");
  std::vector<std::string> unknown_fields;
  return EtcConfigFromJson(merged, where, &unknown_fields);
}

namespace {

using Json = nlohmann::json;

static_assert(HasAllFields<ModelOrigin>());
static_assert(HasAllFields<TokenizerConfig>());
static_assert(HasAllFields<DataConfig>());
static_assert(HasAllFields<OptimizerConfig>());
static_assert(HasAllFields<ScheduleConfig>());
static_assert(HasAllFields<TrainConfig>());

// --- Rules for several fields of an object -----------------------------------

template <typename Config>
void CheckTogether(const Config&, JsonObjectReader*) {}

void CheckTogether(const DataConfig& config, JsonObjectReader* reader) {
  if (config.dev_fraction > 0 && !config.dev.empty()) {
    reader->Fail("dev_fraction",
                 "should be 0 where dev names files, which are evaluated on");
  }
}

void CheckTogether(const TrainConfig& config, JsonObjectReader* reader) {
  if (config.micro_batch_size > config.batch_size) {
    reader->Fail(
        "micro_batch_size",
        absl::StrCat("should be at most batch_size (", config.batch_size,
                     "), but is ", config.micro_batch_size));
  }
  const absl::StatusOr<DeviceChoice> device = ParseDevice(config.device);
  if (!device.ok()) {
    reader->Fail("device", std::string(device.status().message()));
  }
  if (config.seeds.empty()) {
    reader->Fail("seeds", "should hold at least one number, but is empty");
  }
  std::set<int64_t> seen;
  for (const int64_t seed : config.seeds) {
    if (!seen.insert(seed).second) {
      reader->Fail("seeds", absl::StrCat("should hold each number once, but ",
                                         seed, " is there twice"));
    }
  }
}

// Reads the object that `config` is, if `parent` has it.
template <typename Config>
absl::Status ReadObject(JsonObjectReader* parent, Config* config) {
  const std::string name = ConfigTable<Config>::kObject;
  const Json* object = parent->Raw(name, /*required=*/false);
  if (object == nullptr) {
    return absl::OkStatus();
  }
  JsonObjectReader reader(*object, parent->Where(name));
  ReadFields(&reader, config);
  CheckTogether(*config, &reader);
  return reader.Finish();
}

// --- Defaults from the weights to start from ---------------------------------

// TokenizerConfig::type of a fairseq dictionary.
constexpr char kDictionary[] = "dictionary";

// A run, one of its seeds or a grid stands for its best checkpoint: its
// directory and not the link to it, which a run that goes on moves, while each
// seed reads the weights anew.
absl::Status FindInitCheckpoint(const std::string& where, RunConfig* config) {
  if (config->init.empty()) {
    return absl::OkStatus();
  }
  const absl::StatusOr<FoundCheckpoint> found = FindCheckpoint(config->init);
  // Weights of another origin.
  if (absl::IsNotFound(found.status())) {
    return absl::OkStatus();
  }
  absl::Status status = found.status();
  if (found.ok()) {
    std::error_code error;
    config->init = std::filesystem::canonical(found->directory, error).string();
    if (!error) {
      return absl::OkStatus();
    }
    status = ErrnoStatus(error.value(), "look up", found->directory);
  }
  return absl::Status(status.code(),
                      absl::StrCat(where, ": ", status.message()));
}

// Reads the model of translation: all fields of EncoderDecoderConfig, beside
// those of the file "path", if it is given. The configuration's
// residual_attention is that of each path of which the model says nothing.
absl::Status ReadEncoderDecoder(JsonObjectReader* reader, RunConfig* config) {
  const Json* model = reader->Raw("model", /*required=*/true);
  ETC_RETURN_IF_ERROR(reader->status());
  Json fields = *model;
  if (fields.is_object() && fields.contains("path")) {
    JsonObjectReader object(fields, reader->Where("model"));
    std::string path;
    object.Optional("path", &path);
    CheckPath("path", path, &object);
    ETC_RETURN_IF_ERROR(object.status());
    ETC_ASSIGN_OR_RETURN(Json base, ReadJsonFile(path));
    ETC_RETURN_IF_ERROR(EncoderDecoderConfigFromJson(base, path).status());
    fields.erase("path");
    base.update(fields);
    fields = std::move(base);
  }
  if (fields.is_object()) {
    for (const char* path :
         {"encoder_residual_attention", "decoder_residual_attention",
          "cross_residual_attention"}) {
      if (reader->Has("residual_attention") && !model->contains(path)) {
        fields[path] = config->residual_attention;
      }
    }
  }
  ETC_ASSIGN_OR_RETURN(
      config->encoder_decoder,
      EncoderDecoderConfigFromJson(fields, reader->Where("model")));
  const EncoderDecoderConfig& paths = *config->encoder_decoder;
  if (!reader->Has("residual_attention")) {
    config->residual_attention = paths.encoder_residual_attention;
  }
  return absl::OkStatus();
}

// Sets the rows of the token table that only the vocabulary says. Those of a
// preset stay where the vocabulary is not there: `estimate` needs none.
absl::Status SetRows(const JsonObjectReader& reader, RunConfig* config) {
  int64_t& rows = config->model.vocab_size;
  if (rows > 0 && !VocabularySetsRows(*config)) {
    return absl::OkStatus();
  }
  const TokenizerConfig& named = config->tokenizer;
  std::error_code ignored;
  if (!named.vocabulary.empty() &&
      (rows == 0 ||
       std::filesystem::is_regular_file(named.vocabulary, ignored))) {
    ETC_ASSIGN_OR_RETURN(rows, CountPieces({.type = named.type,
                                            .vocabulary = named.vocabulary}));
  }
  return rows > 0 ? absl::OkStatus()
                  : absl::InvalidArgumentError(absl::StrCat(
                        reader.Where("model"),
                        ".vocab_size should be given where no vocabulary says "
                        "it, but is absent"));
}

absl::Status ReadModelAndResidual(JsonObjectReader* reader, RunConfig* config) {
  if (config->task == kTranslationTask) {
    return ReadEncoderDecoder(reader, config);
  }
  const Json* model = reader->Raw("model", /*required=*/config->init.empty());
  if (model == nullptr && config->init.empty()) {
    return reader->status();
  }
  ETC_ASSIGN_OR_RETURN(
      config->model,
      ReadConfigModel(model == nullptr ? Json::object() : *model,
                      reader->Where("model"), config->init, &config->warnings));
  ETC_RETURN_IF_ERROR(SetRows(*reader, config));
  if (!reader->Has("residual_attention")) {
    config->residual_attention = config->model.residual_attention;
  }
  config->model.residual_attention = config->residual_attention;
  // The bound of residual_decay depends on the mode.
  return CheckEtcConfig(config->model, reader->Where("model"));
}

// Checks that the vocabulary splits text into pieces.
absl::Status CheckIsTokenizer(const JsonObjectReader& reader,
                              const RunConfig& config) {
  return config.tokenizer.type != kDictionary
             ? absl::OkStatus()
             : absl::InvalidArgumentError(absl::StrCat(
                   reader.Where("tokenizer"),
                   ".type should be \"wordpiece\", \"sentencepiece\" or "
                   "\"huggingface\" for ",
                   config.task, ", but is \"dictionary\""));
}

// An error if the tokenizer beside `init` is of another type than that of the
// configuration, which names no vocabulary. If there is none, loading it asks
// for a vocabulary. `advice` is how the type becomes that of `init`.
absl::Status CheckSameType(const JsonObjectReader& reader,
                           const RunConfig& config, const TokenizerFiles& found,
                           const char* advice) {
  return found.type.empty() || found.type == config.tokenizer.type
             ? absl::OkStatus()
             : absl::InvalidArgumentError(absl::StrCat(
                   reader.Where("tokenizer"), ".type is \"",
                   config.tokenizer.type, "\", but init, ", config.init,
                   ", has ",
                   std::filesystem::path(found.vocabulary).filename().string(),
                   " (\"", found.type, "\"): ", advice,
                   ", or name a vocabulary"));
}

// The vocabulary of translation, which has no options; if none is named, that
// of the same type beside the weights to start from.
absl::Status ReadTranslationTokenizer(JsonObjectReader* reader,
                                      RunConfig* config) {
  TokenizerConfig& tokenizer = config->tokenizer;
  ETC_RETURN_IF_ERROR(ReadObject(reader, &tokenizer));
  std::error_code ignored;
  if (tokenizer.vocabulary.empty() &&
      std::filesystem::exists(config->init, ignored)) {
    ETC_ASSIGN_OR_RETURN(
        TokenizerFiles found,
        FindTranslationTokenizer(config->init, tokenizer.type));
    ETC_RETURN_IF_ERROR(
        CheckSameType(*reader, *config, found, "give that type"));
    tokenizer.vocabulary = std::move(found.vocabulary);
  }
  return absl::OkStatus();
}

bool Gives(const Json* object, const char* field) {
  return object != nullptr && object->is_object() && object->contains(field);
}

// An error if the tokenizer is not of the type that the option `where` is for:
// it would be ignored.
absl::Status CheckOptionType(const std::string& where, const char* type,
                             const TokenizerFiles& found) {
  return found.type == type
             ? absl::OkStatus()
             : absl::InvalidArgumentError(absl::StrCat(
                   where, " should be false with tokenizer.type \"", found.type,
                   "\", which ignores it: it is for \"", type, "\""));
}

// Sets the options that the configuration does not give by what the files
// beside the vocabulary say, and checks those that it gives in `object`.
absl::Status TakeTokenizerOptions(const std::string& where, const Json* object,
                                  TokenizerFiles* found,
                                  TokenizerConfig* tokenizer) {
  if (!Gives(object, "lower_case")) {
    tokenizer->lower_case = found->wordpiece.lower_case;
  } else {
    const std::string field = where + ".lower_case";
    if (tokenizer->lower_case) {
      ETC_RETURN_IF_ERROR(CheckOptionType(field, "wordpiece", *found));
    }
    ETC_RETURN_IF_ERROR(SetCase(
        tokenizer->lower_case,
        absl::StrCat(field, " is ", tokenizer->lower_case ? "true" : "false"),
        found));
  }
  if (!Gives(object, "split_punctuation")) {
    tokenizer->split_punctuation = found->split_punctuation;
  } else if (tokenizer->split_punctuation && !found->split_punctuation) {
    return CheckOptionType(where + ".split_punctuation", "sentencepiece",
                           *found);
  }
  return absl::OkStatus();
}

// The fields of the configuration, and for the rest those of the tokenizer
// beside the weights to start from.
absl::Status ReadTokenizerConfig(JsonObjectReader* reader, RunConfig* config) {
  TokenizerConfig& tokenizer = config->tokenizer;
  const Json* object = reader->Raw("tokenizer", /*required=*/false);
  TokenizerFiles found;
  if (!config->init.empty()) {
    absl::StatusOr<TokenizerFiles> beside = FindTokenizer(config->init);
    // If another vocabulary is named, that of `init` need not be usable.
    const auto* named =
        Gives(object, "vocabulary")
            ? object->find("vocabulary")->get_ptr<const std::string*>()
            : nullptr;
    if (!beside.ok() && (named == nullptr || named->empty())) {
      return beside.status();
    }
    found = beside.ok() ? *std::move(beside) : TokenizerFiles();
  }
  if (!found.type.empty()) {
    tokenizer = {found.type, /*vocabulary=*/"", found.wordpiece.lower_case,
                 found.split_punctuation};
  }
  ETC_RETURN_IF_ERROR(ReadObject(reader, &tokenizer));
  ETC_RETURN_IF_ERROR(CheckIsTokenizer(*reader, *config));
  std::error_code ignored;
  if (tokenizer.vocabulary.empty()) {
    ETC_RETURN_IF_ERROR(
        CheckSameType(*reader, *config, found, "leave tokenizer.type out"));
    if (found.type.empty()) {
      return absl::OkStatus();
    }
    tokenizer.vocabulary = found.vocabulary;
  } else if (std::filesystem::is_regular_file(tokenizer.vocabulary, ignored)) {
    ETC_ASSIGN_OR_RETURN(
        TokenizerFiles named,
        Gives(object, "type")
            ? DescribeTokenizer(tokenizer.type, tokenizer.vocabulary)
            : DescribeTokenizerAt(tokenizer.vocabulary));
    tokenizer.type = named.type;
    TakeUnstated(found, &named);
    found = std::move(named);
  } else {
    return absl::OkStatus();  // loading it will say that it is not there
  }
  ETC_RETURN_IF_ERROR(TakeTokenizerOptions(reader->Where("tokenizer"), object,
                                           &found, &tokenizer));
  absl::c_move(TokenizerWarnings(found), std::back_inserter(config->warnings));
  return absl::OkStatus();
}

}  // namespace

bool VocabularySetsRows(const RunConfig& config) {
  const auto model = config.json.find("model");
  return config.init.empty() && model != config.json.end() &&
         model->is_object() && !model->contains("path") &&
         model->value("vocab_size", Json()).is_null();
}

std::string ModelToJson(const RunConfig& config) {
  return config.encoder_decoder.has_value()
             ? EncoderDecoderConfigToJson(*config.encoder_decoder)
             : EtcConfigToJson(config.model);
}

absl::StatusOr<RunConfig> RunConfigFromJson(Json json,
                                            const std::string& source,
                                            const TaskNameCheck& check_task) {
  RunConfig config;
  config.source = source;
  config.json = std::move(json);
  JsonObjectReader reader(config.json, source);
  reader.Raw("task", /*required=*/true);
  ReadFields(&reader, &config);
  // Reading the rest depends on task and init.
  ETC_RETURN_IF_ERROR(reader.status());
  if (check_task) {
    if (const absl::Status known = check_task(config.task); !known.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(reader.Where("task"), ": ", known.message()));
    }
  }

  ETC_RETURN_IF_ERROR(FindInitCheckpoint(reader.Where("init"), &config));
  ETC_RETURN_IF_ERROR(config.task == kTranslationTask
                          ? ReadTranslationTokenizer(&reader, &config)
                          : ReadTokenizerConfig(&reader, &config));
  ETC_RETURN_IF_ERROR(ReadObject(&reader, &config.data));
  ETC_RETURN_IF_ERROR(ReadObject(&reader, &config.optimizer));
  ETC_RETURN_IF_ERROR(ReadObject(&reader, &config.schedule));
  if (config.task == kTranslationTask) {
    config.train.batch_size = 1;
  }
  ETC_RETURN_IF_ERROR(ReadObject(&reader, &config.train));
  if (const Json* options = reader.Raw(config.task, /*required=*/false)) {
    config.task_options = *options;
  }
  if (const Json* grid = reader.Raw("grid", /*required=*/false)) {
    ETC_ASSIGN_OR_RETURN(config.grid, ReadGrid(*grid, reader.Where("grid")));
  }
  // Unknown fields are reported before the model's files are looked for.
  reader.Raw("model", /*required=*/false);
  ETC_RETURN_IF_ERROR(reader.Finish());
  ETC_RETURN_IF_ERROR(ReadModelAndResidual(&reader, &config));
  ETC_RETURN_IF_ERROR(reader.Finish());
  return config;
}

absl::Status RefuseFields(const RunConfig& config, const std::string& name,
                          const std::vector<std::string>& fields,
                          const std::string& reason) {
  const Json object = config.json.value(name, Json::object());
  JsonObjectReader reader(object, absl::StrCat(config.source, ": ", name));
  for (const std::string& field : fields) {
    if (reader.Has(field)) {
      reader.Fail(field, absl::StrCat("decides nothing ", reason));
    }
  }
  return reader.status();
}

absl::StatusOr<ScoringConfig> ReadScoringConfig(const Json& json,
                                                const std::string& source,
                                                const std::string& task) {
  RunConfig config = {.task = task};
  JsonObjectReader reader(json, source);
  ReadFields(&reader, &config);
  if (config.task != task) {
    reader.Fail("task", absl::StrCat("should be \"", task, "\", but is \"",
                                     config.task, "\""));
  }
  const Json* const options = reader.Raw(task, /*required=*/false);
  for (const char* object :
       {ConfigTable<TokenizerConfig>::kObject,
        ConfigTable<OptimizerConfig>::kObject,
        ConfigTable<ScheduleConfig>::kObject, ConfigTable<TrainConfig>::kObject,
        "grid", "model"}) {
    reader.Raw(object, /*required=*/false);
  }
  ETC_RETURN_IF_ERROR(ReadObject(&reader, &config.data));
  ETC_RETURN_IF_ERROR(reader.Finish());
  return ScoringConfig{
      .task_options = options == nullptr ? Json::object() : *options,
      .data = std::move(config.data)};
}

RecordLimits RecordLimitsOf(const DataConfig& data) {
  constexpr uint64_t kMegabyte = 1'000'000;
  return {.max_record_bytes =
              static_cast<uint64_t>(data.max_record_megabytes) * kMegabyte,
          .max_record_field = "data.max_record_megabytes"};
}

absl::StatusOr<RunConfig> ReadRunConfig(
    const std::string& path, const std::vector<std::string>& overrides,
    const TaskNameCheck& check_task, const FieldTypes& types) {
  ETC_ASSIGN_OR_RETURN(Json json, ReadJsonFile(path));
  for (const std::string& override_text : overrides) {
    ETC_RETURN_IF_ERROR(ApplyOverride(override_text, &json, types));
  }
  return RunConfigFromJson(
      std::move(json),
      overrides.empty() ? path : absl::StrCat(path, " with --set"), check_task);
}

}  // namespace etc
