#include "etc/weights/source_config.h"

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/path_lookup.h"
#include "base/status_macros.h"
#include "etc/weights/formats/tensor_source.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

namespace fs = std::filesystem;

using nlohmann::json;

constexpr char kBertConfigJson[] = "bert_config.json";
constexpr char kConfigJson[] = "config.json";
// RoBERTa numbers positions from pad_token_id + 1, and pad_token_id is 1.
constexpr int64_t kRobertaPadding = 1;

fs::path DirectoryOf(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored) ? fs::path(path)
                                         : fs::path(path).parent_path();
}

bool IsHuggingFace(const json& fields) {
  return fields.is_object() &&
         (fields.contains("model_type") || fields.contains("layer_norm_eps") ||
          fields.contains("architectures") ||
          fields.contains("transformers_version"));
}

absl::StatusOr<SourceConfig> OurConfigFromJson(json fields,
                                               const std::string& path) {
  SourceConfig source{.path = path};
  // Most are those of transformers.
  std::vector<std::string> unknown_fields;
  ETC_ASSIGN_OR_RETURN(source.config,
                       EtcConfigFromJson(fields, path, &unknown_fields));
  fields.erase("model_type");
  ETC_ASSIGN_OR_RETURN(source.hugging_face,
                       HuggingFaceFieldsFromJson(fields, path));
  return source;
}

// Adds the model_type that follows from names of HuggingFace's tensors to the
// fields of a configuration that says none.
void AddModelType(const RecognizedNames& names, json* fields) {
  if (!fields->is_object() || fields->contains("model_type")) {
    return;
  }
  const auto classes = fields->find("architectures");
  if (classes == fields->end() || classes->empty()) {
    (*fields)["model_type"] = ModelTypeOf(names);
  }
}

// The names of the tensors at `path`, or nullopt if they cannot be recognised.
std::optional<RecognizedNames> NamesOfTensors(const std::string& path) {
  const auto tensors = OpenTensorSource(path);
  if (!tensors.ok()) {
    return std::nullopt;
  }
  auto names = RecognizeNames(**tensors, path);
  return names.ok() ? std::make_optional(*std::move(names)) : std::nullopt;
}

// Files that we write for Google's code have them, too.
bool HasLabels(const json& fields) {
  return fields.is_object() && fields.contains("id2label");
}

// Our name of an activation, or nullopt if it is not supported.
std::optional<std::string> Activation(const std::string& name,
                                      bool is_hugging_face) {
  const std::string lower = absl::AsciiStrToLower(name);
  if (lower == "gelu") {
    return is_hugging_face ? "gelu_erf" : "gelu";
  }
  if (is_hugging_face &&
      (lower == "gelu_new" || lower == "gelu_pytorch_tanh")) {
    return "gelu";
  }
  if (lower == "relu" || lower == "tanh" || lower == "linear") {
    return lower;
  }
  return std::nullopt;
}

// The fields that only HuggingFace's files have.
void ReadHuggingFaceFields(JsonObjectReader* reader, SourceConfig* bert) {
  std::string positions = "absolute";
  bool is_decoder = false;
  reader->Optional("position_embedding_type", &positions);
  reader->Optional("is_decoder", &is_decoder);
  reader->Optional("layer_norm_eps", &bert->config.layer_norm_epsilon);
  if (positions != "absolute") {
    reader->Fail(
        "position_embedding_type",
        absl::StrCat("should be \"absolute\", but is \"", positions, "\""));
  }
  if (is_decoder) {
    reader->Fail("is_decoder", "should be false, but is true");
  }
  bert->first_position = FirstPosition(bert->hugging_face);
}

void ReadFields(JsonObjectReader* reader, bool is_hugging_face,
                SourceConfig* bert) {
  EtcConfig& config = bert->config;
  reader->Required("vocab_size", &config.vocab_size);
  reader->Required("hidden_size", &config.hidden_size);
  reader->Required("num_hidden_layers", &config.num_hidden_layers);
  reader->Required("num_attention_heads", &config.num_attention_heads);
  reader->Required("intermediate_size", &config.intermediate_size);
  reader->Required("max_position_embeddings",
                   &config.max_absolute_position_embeddings);
  reader->Required("type_vocab_size", &config.segment_vocab_size);
  reader->Optional("hidden_dropout_prob", &config.hidden_dropout_prob);
  reader->Optional("attention_probs_dropout_prob",
                   &config.attention_probs_dropout_prob);
  reader->Optional("initializer_range", &config.initializer_range);
  std::string activation = "gelu";
  reader->Optional("hidden_act", &activation);
  if (const auto ours = Activation(activation, is_hugging_face)) {
    config.hidden_act = *ours;
  } else {
    reader->Fail("hidden_act",
                 absl::StrCat("should be gelu, relu, tanh or linear, but is \"",
                              activation, "\""));
  }
  if (is_hugging_face) {
    ReadHuggingFaceFields(reader, bert);
    config.max_absolute_position_embeddings -= bert->first_position;
  }
  if (reader->Has("use_running_mean")) {
    bool mean = false;
    reader->Optional("use_running_mean", &mean);
    config.residual_attention = mean ? "mean" : "sum";
  }
  reader->Optional("residual_attention", &config.residual_attention);
  reader->Optional("residual_decay", &config.residual_decay);
}

json CommonFields(const EtcConfig& config) {
  json fields = {
      {"vocab_size", config.vocab_size},
      {"hidden_size", config.hidden_size},
      {"num_hidden_layers", config.num_hidden_layers},
      {"num_attention_heads", config.num_attention_heads},
      {"intermediate_size", config.intermediate_size},
      {"max_position_embeddings", config.max_absolute_position_embeddings},
      {"type_vocab_size", config.segment_vocab_size},
      {"hidden_act", config.hidden_act},
      {"hidden_dropout_prob", config.hidden_dropout_prob},
      {"attention_probs_dropout_prob", config.attention_probs_dropout_prob},
      {"initializer_range", config.initializer_range}};
  // RealFormer's code has no other modes; "decay" is read by ours alone.
  if (config.residual_attention == "sum" ||
      config.residual_attention == "mean") {
    fields["use_running_mean"] = config.residual_attention == "mean";
  } else if (config.residual_attention == "decay") {
    fields["residual_attention"] = config.residual_attention;
    fields["residual_decay"] = config.residual_decay;
  }
  return fields;
}

}  // namespace

std::string ModelTypeOf(const RecognizedNames& names) {
  return absl::EndsWith(names.prefix, "roberta.") ? "roberta" : "bert";
}

bool IsOfTransformersExport(const json& fields) {
  return fields.is_object() && fields.contains("model_type") &&
         fields["model_type"] == kRealEtcModelType;
}

std::string FileBesideWeights(const std::string& path,
                              const std::string& name) {
  std::string file = (DirectoryOf(path) / name).string();
  return EntryExists(file).value_or(false) ? file : "";
}

absl::StatusOr<SourceConfig> ReadSourceConfig(const std::string& path) {
  // First: save_pretrained of transformers, into the directory of an export,
  // replaces config.json and the weights, but leaves etc_config.json.
  const std::string hugging_face = FileBesideWeights(path, kConfigJson);
  if (!hugging_face.empty()) {
    ETC_ASSIGN_OR_RETURN(const json fields, ReadJsonFile(hugging_face));
    if (IsOfTransformersExport(fields)) {
      return OurConfigFromJson(fields, hugging_face);
    }
  }
  SourceConfig source;
  source.path = FileBesideWeights(path, "etc_config.json");
  if (!source.path.empty()) {
    std::vector<std::string> unknown_fields;
    ETC_ASSIGN_OR_RETURN(source.config,
                         ReadEtcConfig(source.path, &unknown_fields));
    for (const std::string& field : unknown_fields) {
      source.warnings.push_back(absl::StrCat(source.path, ": unknown field \"",
                                             field, "\" is ignored"));
    }
    return source;
  }
  const auto names = NamesOfTensors(path);
  return ReadBertSourceConfig(path, names.has_value() ? &*names : nullptr);
}

absl::StatusOr<SourceConfig> ReadBertSourceConfig(
    const std::string& path, const RecognizedNames* names) {
  const bool is_hugging_face =
      names != nullptr && names->style == NameStyle::kHuggingFace;
  std::vector<const char*> files = {kBertConfigJson, kConfigJson};
  if (is_hugging_face) {
    std::swap(files[0], files[1]);
  }
  for (const char* name : files) {
    const std::string file = FileBesideWeights(path, name);
    if (file.empty()) {
      continue;
    }
    ETC_ASSIGN_OR_RETURN(json fields, ReadJsonFile(file));
    if (is_hugging_face) {
      AddModelType(*names, &fields);
    }
    return BertConfigFromJson(fields, file);
  }
  // `path` may be the prefix of a TensorFlow checkpoint.
  ETC_ASSIGN_OR_RETURN(bool is_there, PathExists(path));
  if (!is_there) {
    ETC_ASSIGN_OR_RETURN(is_there, PathExists(path + ".index"));
  }
  if (!is_there) {
    return absl::NotFoundError(
        absl::StrCat(path, ": there is no such file or directory"));
  }
  return absl::NotFoundError(absl::StrCat(
      path,
      ": there is no etc_config.json, bert_config.json or config.json "
      "with the weights"));
}

absl::StatusOr<SourceConfig> BertConfigFromJson(const json& fields,
                                                const std::string& source) {
  SourceConfig bert{.path = source, .config = AsBert({}), .is_bert = true};
  EtcConfig& config = bert.config;
  if (IsHuggingFace(fields) || HasLabels(fields)) {
    ETC_ASSIGN_OR_RETURN(bert.hugging_face,
                         HuggingFaceFieldsFromJson(fields, source));
  }
  JsonObjectReader reader(fields, source);
  ReadFields(&reader, IsHuggingFace(fields), &bert);
  ETC_RETURN_IF_ERROR(reader.status());
  if (config.vocab_size < 1 || config.max_absolute_position_embeddings < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(source,
                     ": vocab_size and max_position_embeddings should "
                     "be at least 1 beside those of padding"));
  }
  ETC_RETURN_IF_ERROR(CheckEtcConfig(config, source));
  return bert;
}

EtcConfig AsBert(EtcConfig config) {
  config.relative_pos_max_distance = 0;
  config.relative_vocab_size = std::nullopt;
  config.share_feed_forward_params = true;
  config.share_qkv_projections = true;
  config.share_kv_projections = true;
  config.share_att_output_projection = true;
  config.has_long_tokens = false;
  config.sublayer = SublayerName(Sublayer::kPostNorm);
  config.final_layer_norm = false;
  return config;
}

bool IsBert(const EtcConfig& config) {
  const bool is_one_stream =
      !config.has_long_tokens ||
      (config.share_qkv_projections && config.share_kv_projections &&
       config.share_att_output_projection && config.share_feed_forward_params);
  return is_one_stream && config.max_absolute_position_embeddings > 0 &&
         !config.relative_vocab_size.has_value();
}

int64_t FirstPosition(const HuggingFaceFields& fields) {
  return fields.is_roberta() ? fields.pad_token_id.value_or(kRobertaPadding) + 1
                             : 0;
}

std::string GoogleBertConfigToJson(const EtcConfig& config,
                                   const HuggingFaceFields& fields,
                                   int64_t num_outputs) {
  json object = CommonFields(config);
  const auto labels = HuggingFaceFieldsToJson(fields, num_outputs);
  for (const char* field : {"id2label", "label2id"}) {
    if (labels.contains(field)) {
      object[field] = labels[field];
    }
  }
  return JsonText(object, /*indent=*/2) + "\n";
}

std::string HuggingFaceConfigToJson(const EtcConfig& config,
                                    const HuggingFaceFields& fields,
                                    int64_t num_outputs) {
  json object = CommonFields(config);
  if (config.hidden_act == "gelu") {
    object["hidden_act"] = "gelu_new";
  } else if (config.hidden_act == "gelu_erf") {
    object["hidden_act"] = "gelu";
  }
  const int64_t first = FirstPosition(fields);
  object["max_position_embeddings"] =
      config.max_absolute_position_embeddings + first;
  object["layer_norm_eps"] = config.layer_norm_epsilon;
  object["pad_token_id"] = first > 0 ? first - 1 : 0;
  object.update(HuggingFaceFieldsToJson(fields, num_outputs));
  return JsonText(object, /*indent=*/2) + "\n";
}

EtcConfig LiftedConfig(const EtcConfig& bert) {
  EtcConfig config = *EtcConfigPreset("base");
  config.vocab_size = bert.vocab_size;
  config.embedding_size = bert.embedding_size;
  config.hidden_size = bert.hidden_size;
  config.num_hidden_layers = bert.num_hidden_layers;
  config.num_attention_heads = bert.num_attention_heads;
  config.att_size_per_head = bert.att_size_per_head;
  config.intermediate_size = bert.intermediate_size;
  config.residual_attention = bert.residual_attention;
  config.residual_gate_init = bert.residual_gate_init;
  config.residual_decay = bert.residual_decay;
  // The official ETC knows the tanh form of gelu only, but the weights of
  // HuggingFace's BERT were trained with the exact one.
  config.hidden_act = bert.hidden_act;
  return config;
}

EtcConfig InitialConfig(const SourceConfig& source) {
  return IsBert(source.config) ? LiftedConfig(source.config) : source.config;
}

}  // namespace etc
