#include "etc/config.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "attention/pattern.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "etc/field_checker.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

using nlohmann::json;

constexpr char kPreActivationOrder[] = "use_pre_activation_order";

// Ids and lengths are 32 bits wide, and products of two sizes fit 64; beyond
// that, a hundred times the sizes of any published model: a zero too many
// should be refused before a machine is frozen with it.
constexpr int64_t kMostRows = int64_t{1} << 24;    // of the token table
constexpr int64_t kMostTokens = int64_t{1} << 20;  // positions and distances
constexpr int64_t kMostFeatures = int64_t{1} << 20;
constexpr int64_t kMostSegments = int64_t{1} << 16;
constexpr int64_t kMostLayers = 4096;
constexpr int64_t kMostHeads = 4096;

// Calls `visit` with the name and the member of each field that the file and
// the struct hold in the same form: all but vocab_size and hidden_act.
template <typename Config, typename Visitor>
void ForEachField(Config& config, Visitor visit) {
  visit("segment_vocab_size", config.segment_vocab_size);
  visit("embedding_size", config.embedding_size);
  visit("hidden_size", config.hidden_size);
  visit("num_hidden_layers", config.num_hidden_layers);
  visit("num_attention_heads", config.num_attention_heads);
  visit("local_radius", config.local_radius);
  visit("att_size_per_head", config.att_size_per_head);
  visit("relative_pos_max_distance", config.relative_pos_max_distance);
  visit("relative_vocab_size", config.relative_vocab_size);
  visit("max_absolute_position_embeddings",
        config.max_absolute_position_embeddings);
  visit("intermediate_size", config.intermediate_size);
  visit("hidden_dropout_prob", config.hidden_dropout_prob);
  visit("attention_probs_dropout_prob", config.attention_probs_dropout_prob);
  visit("initializer_range", config.initializer_range);
  visit("share_feed_forward_params", config.share_feed_forward_params);
  visit("share_kv_projections", config.share_kv_projections);
  visit("share_qkv_projections", config.share_qkv_projections);
  visit("share_att_output_projection", config.share_att_output_projection);
  visit("use_hard_g2l_mask", config.use_hard_g2l_mask);
  visit("use_hard_l2g_mask", config.use_hard_l2g_mask);
  visit("grad_checkpointing_period", config.grad_checkpointing_period);
  visit("sublayer", config.sublayer);
  visit("residual_attention", config.residual_attention);
  visit("residual_gate_init", config.residual_gate_init);
  visit("residual_decay", config.residual_decay);
  visit("layer_norm_epsilon", config.layer_norm_epsilon);
  visit("has_long_tokens", config.has_long_tokens);
  visit("final_layer_norm", config.final_layer_norm);
  visit("depth_scaled_initializer", config.depth_scaled_initializer);
}

// "128; set num_attention_heads as well, to 2 for heads of 64": the size that
// divides `hidden_size` and is nearest to that of BERT's heads.
std::string WithFittingHeads(int64_t hidden_size) {
  constexpr int64_t kUsual = 64;
  int64_t nearest = 1;
  for (int64_t size = 1; size <= std::min(hidden_size, 2 * kUsual); ++size) {
    if (hidden_size % size == 0 &&
        std::abs(size - kUsual) <= std::abs(nearest - kUsual)) {
      nearest = size;
    }
  }
  return absl::StrCat(hidden_size, "; set num_attention_heads as well, to ",
                      hidden_size / nearest, " for heads of ", nearest);
}

// Relative ids: 2m + 1 for the distances from -m to m and 3 for links and other
// segments (doc/model.md 1.1; the official code checks the same).
void CheckRelativeIds(const EtcConfig& config, FieldChecker& checker) {
  const int64_t distance = config.relative_pos_max_distance;
  checker.Size("relative_pos_max_distance", distance, 0, kMostTokens);
  checker.OptionalSize("relative_vocab_size", config.relative_vocab_size,
                       4 * kMostTokens);
  if (config.relative_vocab_size.has_value()) {
    checker.Check(*config.relative_vocab_size >= 2 * distance + 4,
                  "relative_vocab_size",
                  absl::StrCat("at least 2 * relative_pos_max_distance + 4 = ",
                               2 * distance + 4),
                  *config.relative_vocab_size);
  } else {
    checker.Check(distance == 0, "relative_pos_max_distance",
                  "0 where relative_vocab_size is null", distance);
  }
}

// Reads the official field for `sublayer`, beside which it may stand.
void ReadPreActivationOrder(JsonObjectReader& reader, EtcConfig& config) {
  const bool is_given = reader.Has("sublayer");
  bool pre = config.sublayer == SublayerName(Sublayer::kPreNorm);
  if (!reader.Has(kPreActivationOrder)) {
    return;
  }
  const bool expected = pre;
  reader.Optional(kPreActivationOrder, &pre);
  if (!is_given) {
    config.sublayer =
        SublayerName(pre ? Sublayer::kPreNorm : Sublayer::kPostNorm);
  } else if (pre != expected) {
    reader.Fail(kPreActivationOrder,
                absl::StrCat("should be ", expected ? "true" : "false",
                             " where sublayer is \"", config.sublayer,
                             "\", but is ", pre ? "true" : "false"));
  }
}

// Fields that only one stream would use cannot be separate from those of the
// other.
void CheckStreams(const EtcConfig& config, FieldChecker& checker) {
  for (const auto& [field, is_shared] :
       {std::pair("share_qkv_projections", config.share_qkv_projections),
        std::pair("share_att_output_projection",
                  config.share_att_output_projection),
        std::pair("share_feed_forward_params",
                  config.share_feed_forward_params)}) {
    checker.Check(config.has_long_tokens || is_shared, field,
                  "true where has_long_tokens is false", "false");
  }
}

constexpr int64_t kBertVocabulary = 30522;  // uncased

struct BertSize {
  const char* name;
  int64_t layers, hidden, heads;
};
// doc/pretraining.md 6.2; the intermediate size is four times the hidden one.
constexpr BertSize kBertSizes[] = {{"bert_small", 4, 512, 8},
                                   {"bert_base", 12, 768, 12},
                                   {"bert_large", 24, 1024, 16},
                                   {"bert_xlarge", 36, 1536, 24}};

EtcConfig BertOfSize(const BertSize& size) {
  EtcConfig config;
  config.vocab_size = kBertVocabulary;
  config.segment_vocab_size = 2;
  config.hidden_size = size.hidden;
  config.num_hidden_layers = size.layers;
  config.num_attention_heads = size.heads;
  config.intermediate_size = 4 * size.hidden;
  config.max_absolute_position_embeddings = 512;
  config.relative_pos_max_distance = 0;
  config.relative_vocab_size = std::nullopt;
  config.share_kv_projections = true;
  config.share_qkv_projections = true;
  config.share_att_output_projection = true;
  config.has_long_tokens = false;
  return config;
}

}  // namespace

std::optional<Sublayer> SublayerFromName(absl::string_view name) {
  for (const Sublayer sublayer : {Sublayer::kPostNorm, Sublayer::kPreNorm,
                                  Sublayer::kReZero, Sublayer::kAdmin}) {
    if (name == SublayerName(sublayer)) {
      return sublayer;
    }
  }
  return std::nullopt;
}

const char* SublayerName(Sublayer sublayer) {
  return kSublayers[static_cast<size_t>(sublayer)];
}

absl::StatusOr<EtcConfig> EtcConfigPreset(absl::string_view name) {
  std::vector<absl::string_view> names = {"base", "large"};
  for (const BertSize& size : kBertSizes) {
    if (name == size.name) {
      return BertOfSize(size);
    }
    names.emplace_back(size.name);
  }
  EtcConfig config;
  // The published parameter counts are those of unshared projections, not of
  // the code's defaults (doc/model.md 1.2).
  config.share_qkv_projections = false;
  config.use_hard_g2l_mask = true;
  if (name == "base") {
    config.vocab_size = kBertVocabulary;
    return config;
  }
  if (name == "large") {
    // RoBERTa's 50 265; the released SentencePiece model may differ by a few
    // entries (GuessesVocabularies).
    config.vocab_size = 50265;
    config.hidden_size = 1024;
    config.num_hidden_layers = 24;
    config.num_attention_heads = 16;
    config.intermediate_size = 4096;
    config.local_radius = 169;
    config.relative_pos_max_distance = 24;
    // Unpublished. At least 2 * 24 + 4 = 52, and 64 is to that as base's 32 is
    // to 28: the next power of two.
    config.relative_vocab_size = 64;
    return config;
  }
  return absl::NotFoundError(absl::StrCat("should be \"",
                                          absl::StrJoin(names, "\" or \""),
                                          "\", but is \"", name, "\""));
}

bool GuessesVocabularies(absl::string_view preset) { return preset == "large"; }

absl::StatusOr<EtcConfig> EtcConfigFromJson(
    const json& json, const std::string& source,
    std::vector<std::string>* unknown_fields) {
  EtcConfig config;
  JsonObjectReader reader(json, source);
  ForEachField(config, [&](const char* name, auto& member) {
    reader.Optional(name, &member);
  });
  ReadPreActivationOrder(reader, config);
  std::optional<int64_t> vocab_size;
  reader.Optional("vocab_size", &vocab_size);
  if (vocab_size.has_value() && *vocab_size < 1) {
    reader.Fail("vocab_size",
                absl::StrCat("should be at least 1, but is ", *vocab_size));
  }
  config.vocab_size = vocab_size.value_or(0);
  // The official code ignores the case and takes null and "" for identity.
  std::optional<std::string> hidden_act = config.hidden_act;
  reader.Optional("hidden_act", &hidden_act);
  config.hidden_act = absl::AsciiStrToLower(hidden_act.value_or(""));
  if (config.hidden_act.empty()) {
    config.hidden_act = "linear";
  }
  ETC_RETURN_IF_ERROR(reader.Finish(JsonObjectReader::UnknownFields::kIgnore));
  ETC_RETURN_IF_ERROR(CheckEtcConfig(config, source));
  const std::vector<std::string> unread = reader.UnreadFields();
  unknown_fields->insert(unknown_fields->end(), unread.begin(), unread.end());
  return config;
}

absl::StatusOr<EtcConfig> ReadEtcConfig(
    const std::string& path, std::vector<std::string>* unknown_fields) {
  ETC_ASSIGN_OR_RETURN(const json json, ReadJsonFile(path));
  return EtcConfigFromJson(json, path, unknown_fields);
}

std::string EtcConfigToJson(const EtcConfig& config) {
  json fields = json::object();
  const auto set = [&](const char* name, const auto& value) {
    if constexpr (requires { value.has_value(); }) {
      fields[name] = value.has_value() ? json(*value) : json(nullptr);
    } else {
      fields[name] = value;
    }
  };
  ForEachField(config, set);
  fields["vocab_size"] =
      config.vocab_size > 0 ? json(config.vocab_size) : json(nullptr);
  fields["hidden_act"] = config.hidden_act;
  fields[kPreActivationOrder] =
      config.sublayer == SublayerName(Sublayer::kPreNorm);
  return JsonText(fields, /*indent=*/2) + "\n";
}

absl::Status CheckEtcConfig(const EtcConfig& config,
                            const std::string& source) {
  FieldChecker checker(source);
  checker.Size("vocab_size", config.vocab_size, 0, kMostRows);
  checker.Size("segment_vocab_size", config.segment_vocab_size, 1,
               kMostSegments);
  checker.OptionalSize("embedding_size", config.embedding_size, kMostFeatures);
  checker.Size("hidden_size", config.hidden_size, 1, kMostFeatures);
  checker.Size("num_hidden_layers", config.num_hidden_layers, 1, kMostLayers);
  checker.Size("num_attention_heads", config.num_attention_heads, 1,
               kMostHeads);
  checker.Size("local_radius", config.local_radius, 1, kMostLocalRadius);
  checker.OptionalSize("att_size_per_head", config.att_size_per_head,
                       kMostFeatures);
  if (checker.status().ok() && !config.att_size_per_head.has_value()) {
    checker.Check(config.hidden_size % config.num_attention_heads == 0,
                  "hidden_size",
                  absl::StrCat("a multiple of num_attention_heads (",
                               config.num_attention_heads,
                               ") where att_size_per_head is null"),
                  WithFittingHeads(config.hidden_size));
  }
  CheckRelativeIds(config, checker);
  checker.Size("max_absolute_position_embeddings",
               config.max_absolute_position_embeddings, 0, kMostTokens);
  checker.Size("intermediate_size", config.intermediate_size, 1, kMostFeatures);
  checker.OneOf("hidden_act", kActivations, config.hidden_act);
  checker.Probability("hidden_dropout_prob", config.hidden_dropout_prob);
  checker.Probability("attention_probs_dropout_prob",
                      config.attention_probs_dropout_prob);
  checker.Check(
      config.initializer_range > 0 && std::isfinite(config.initializer_range),
      "initializer_range", "above 0", config.initializer_range);
  checker.Size("grad_checkpointing_period", config.grad_checkpointing_period, 0,
               kMostLayers);
  checker.OneOf("sublayer", kSublayers, config.sublayer);
  checker.Check(std::isfinite(config.residual_gate_init), "residual_gate_init",
                "a finite number", config.residual_gate_init);
  const double decay = config.residual_decay;
  checker.Check(decay > 0 && decay < 1, "residual_decay", "above 0 and below 1",
                decay);
  checker.ResidualPath("residual_attention", config.residual_attention,
                       config.num_hidden_layers, decay);
  checker.Check(
      config.layer_norm_epsilon > 0 && std::isfinite(config.layer_norm_epsilon),
      "layer_norm_epsilon", "above 0", config.layer_norm_epsilon);
  CheckStreams(config, checker);
  checker.Check(
      !config.final_layer_norm ||
          config.sublayer == SublayerName(Sublayer::kPreNorm),
      "final_layer_norm",
      absl::StrCat("false where sublayer is \"", config.sublayer, "\""),
      "true");
  return checker.status();
}

}  // namespace etc
