#include "etc/config.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/fields.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "etc/config_fields.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

using nlohmann::json;

static_assert(HasAllFields<EtcConfig>());

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
void CheckRelativeIds(const EtcConfig& config, FieldMistakes* mistakes) {
  const int64_t distance = config.relative_pos_max_distance;
  if (config.relative_vocab_size.has_value()) {
    mistakes->Check(
        *config.relative_vocab_size >= 2 * distance + 4, "relative_vocab_size",
        absl::StrCat("at least 2 * relative_pos_max_distance + 4 = ",
                     2 * distance + 4),
        *config.relative_vocab_size);
  } else {
    mistakes->Check(distance == 0, "relative_pos_max_distance",
                    "0 where relative_vocab_size is null", distance);
  }
}

// Fields that only one stream would use cannot be separate from those of the
// other.
void CheckStreams(const EtcConfig& config, FieldMistakes* mistakes) {
  for (const auto& [field, is_shared] :
       {std::pair("share_qkv_projections", config.share_qkv_projections),
        std::pair("share_att_output_projection",
                  config.share_att_output_projection),
        std::pair("share_feed_forward_params",
                  config.share_feed_forward_params)}) {
    mistakes->Check(config.has_long_tokens || is_shared, field,
                    "true where has_long_tokens is false", "false");
  }
}

// Checks several fields at once, each of which is within its bounds.
void CheckTogether(const EtcConfig& config, FieldMistakes* mistakes) {
  if (!mistakes->ok()) {
    return;
  }
  mistakes->Check(config.att_size_per_head.has_value() ||
                      config.hidden_size % config.num_attention_heads == 0,
                  "hidden_size",
                  absl::StrCat("a multiple of num_attention_heads (",
                               config.num_attention_heads,
                               ") where att_size_per_head is null"),
                  WithFittingHeads(config.hidden_size));
  CheckRelativeIds(config, mistakes);
  CheckDecayOfDepth(config.residual_attention, config.num_hidden_layers,
                    config.residual_decay, mistakes);
  CheckStreams(config, mistakes);
  mistakes->Check(
      !config.final_layer_norm ||
          config.sublayer == SublayerName(Sublayer::kPreNorm),
      "final_layer_norm",
      absl::StrCat("false where sublayer is \"", config.sublayer, "\""),
      "true");
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
  const auto* const found =
      std::find(std::begin(kSublayers), std::end(kSublayers), name);
  if (found == std::end(kSublayers)) {
    return std::nullopt;
  }
  return static_cast<Sublayer>(found - std::begin(kSublayers));
}

const char* SublayerName(Sublayer sublayer) {
  return kSublayers[static_cast<size_t>(sublayer)].data();
}

void CheckDecayOfDepth(const std::string& mode, int64_t layers, double decay,
                       FieldMistakes* mistakes) {
  if (mode != ResidualAttentionName(ResidualAttention::kDecay) || layers < 2) {
    return;
  }
  const double least =
      std::pow(kLargestDecayFactor, -1.0 / static_cast<double>(layers - 1));
  mistakes->Check(decay > least, "residual_decay",
                  absl::StrCat("above ", least, " for ", layers,
                               " layers, so that its powers stay exact"),
                  decay);
}

void ConfigTable<EtcConfig>::ReadActivation(const std::string& field,
                                            const FieldRule& rule,
                                            JsonObjectReader* reader,
                                            std::string* name) {
  std::optional<std::string> given = *name;
  reader->Optional(field, &given);
  *name = absl::AsciiStrToLower(given.value_or(""));
  if (name->empty()) {
    *name = "linear";
  }
  CheckRule(rule, field, *name, reader);
}

void ConfigTable<EtcConfig>::ReadPreActivationOrder(JsonObjectReader& reader,
                                                    EtcConfig* config) {
  const bool expected = config->sublayer == SublayerName(Sublayer::kPreNorm);
  bool pre = expected;
  reader.Optional(kPreActivationOrder, &pre);
  if (!reader.Has(kPreActivationOrder)) {
    return;
  }
  if (!reader.Has("sublayer")) {
    config->sublayer =
        SublayerName(pre ? Sublayer::kPreNorm : Sublayer::kPostNorm);
    return;
  }
  reader.Check(pre == expected, kPreActivationOrder,
               absl::StrCat(expected ? "true" : "false",
                            " where sublayer is \"", config->sublayer, "\""),
               pre ? "true" : "false");
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
  return absl::NotFoundError(UnknownNameText(name, names));
}

bool GuessesVocabularies(absl::string_view preset) { return preset == "large"; }

absl::StatusOr<EtcConfig> EtcConfigFromJson(
    const json& json, const std::string& source,
    std::vector<std::string>* unknown_fields) {
  EtcConfig config;
  JsonObjectReader reader(json, source);
  ReadFields(&reader, &config);
  CheckTogether(config, &reader);
  ETC_RETURN_IF_ERROR(reader.status());
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
  WriteFields(config, &fields);
  fields[ConfigTable<EtcConfig>::kPreActivationOrder] =
      config.sublayer == SublayerName(Sublayer::kPreNorm);
  return JsonText(fields, /*indent=*/2) + "\n";
}

absl::Status CheckEtcConfig(const EtcConfig& config,
                            const std::string& source) {
  FieldMistakes mistakes(source);
  CheckFields(config, &mistakes);
  CheckTogether(config, &mistakes);
  return mistakes.status();
}

}  // namespace etc
