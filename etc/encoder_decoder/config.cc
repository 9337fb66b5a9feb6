#include "etc/encoder_decoder/config.h"

#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "etc/config.h"
#include "etc/field_checker.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

constexpr const char* kEmbeddingSharing[] = {"all", "decoder", "none"};
// As those of EtcConfig.
constexpr int64_t kMostVocabulary = int64_t{1} << 24;
constexpr int64_t kMostPositions = int64_t{1} << 20;
constexpr int64_t kMostWidth = int64_t{1} << 20;
constexpr int64_t kMostDepth = 4096;

// Calls `visit` with the name and the member of each field but vocab_size.
template <typename Config, typename Visitor>
void ForEachTranslationField(Config& config, Visitor visit) {
  visit("share_embeddings", config.share_embeddings);
  visit("hidden_size", config.hidden_size);
  visit("intermediate_size", config.intermediate_size);
  visit("num_attention_heads", config.num_attention_heads);
  visit("num_encoder_layers", config.num_encoder_layers);
  visit("num_decoder_layers", config.num_decoder_layers);
  visit("max_source_positions", config.max_source_positions);
  visit("max_target_positions", config.max_target_positions);
  visit("hidden_act", config.hidden_act);
  visit("hidden_dropout_prob", config.hidden_dropout_prob);
  visit("attention_probs_dropout_prob", config.attention_probs_dropout_prob);
  visit("activation_dropout_prob", config.activation_dropout_prob);
  visit("encoder_sublayer", config.encoder_sublayer);
  visit("decoder_sublayer", config.decoder_sublayer);
  visit("encoder_residual_attention", config.encoder_residual_attention);
  visit("decoder_residual_attention", config.decoder_residual_attention);
  visit("cross_residual_attention", config.cross_residual_attention);
  visit("residual_gate_init", config.residual_gate_init);
  visit("residual_decay", config.residual_decay);
  visit("layer_norm_epsilon", config.layer_norm_epsilon);
}

void CheckSizes(const EncoderDecoderConfig& config, FieldChecker* checker) {
  checker->Size("vocab_size", config.vocab_size, 0, kMostVocabulary);
  checker->Check(config.vocab_size == 0 || config.vocab_size > kUnknownId + 1,
                 "vocab_size", "more than its 4 special ids",
                 config.vocab_size);
  checker->Size("hidden_size", config.hidden_size, 4, kMostWidth);
  checker->Size("intermediate_size", config.intermediate_size, 1, kMostWidth);
  checker->Size("num_attention_heads", config.num_attention_heads, 1,
                kMostDepth);
  if (checker->status().ok()) {
    checker->Check(config.hidden_size % config.num_attention_heads == 0,
                   "hidden_size",
                   absl::StrCat("a multiple of num_attention_heads (",
                                config.num_attention_heads, ")"),
                   config.hidden_size);
  }
  checker->Size("num_encoder_layers", config.num_encoder_layers, 1, kMostDepth);
  checker->Size("num_decoder_layers", config.num_decoder_layers, 1, kMostDepth);
  checker->Size("max_source_positions", config.max_source_positions, 1,
                kMostPositions);
  checker->Size("max_target_positions", config.max_target_positions, 1,
                kMostPositions);
}

}  // namespace

absl::StatusOr<EncoderDecoderConfig> EncoderDecoderConfigFromJson(
    const nlohmann::json& json, const std::string& source) {
  EncoderDecoderConfig config;
  JsonObjectReader reader(json, source);
  ForEachTranslationField(config, [&](const char* name, auto& member) {
    reader.Optional(name, &member);
  });
  std::optional<int64_t> vocab_size;
  reader.Optional("vocab_size", &vocab_size);
  if (vocab_size.has_value() && *vocab_size < 1) {
    reader.Fail("vocab_size",
                absl::StrCat("should be at least 1, but is ", *vocab_size));
  }
  config.vocab_size = vocab_size.value_or(0);
  ETC_RETURN_IF_ERROR(reader.Finish());
  ETC_RETURN_IF_ERROR(CheckEncoderDecoderConfig(config, source));
  return config;
}

std::string EncoderDecoderConfigToJson(const EncoderDecoderConfig& config) {
  nlohmann::json fields = nlohmann::json::object();
  ForEachTranslationField(config, [&](const char* name, const auto& value) {
    fields[name] = value;
  });
  fields["vocab_size"] = config.vocab_size > 0
                             ? nlohmann::json(config.vocab_size)
                             : nlohmann::json(nullptr);
  return JsonText(fields, /*indent=*/2) + "\n";
}

absl::Status CheckEncoderDecoderConfig(const EncoderDecoderConfig& config,
                                       const std::string& source) {
  FieldChecker checker(source);
  CheckSizes(config, &checker);
  checker.OneOf("share_embeddings", kEmbeddingSharing, config.share_embeddings);
  checker.OneOf("hidden_act", kActivations, config.hidden_act);
  checker.Probability("hidden_dropout_prob", config.hidden_dropout_prob);
  checker.Probability("attention_probs_dropout_prob",
                      config.attention_probs_dropout_prob);
  checker.Probability("activation_dropout_prob",
                      config.activation_dropout_prob);
  checker.OneOf("encoder_sublayer", kSublayers, config.encoder_sublayer);
  checker.OneOf("decoder_sublayer", kSublayers, config.decoder_sublayer);
  checker.Check(std::isfinite(config.residual_gate_init), "residual_gate_init",
                "a finite number", config.residual_gate_init);
  const double decay = config.residual_decay;
  checker.Check(decay > 0 && decay < 1, "residual_decay", "above 0 and below 1",
                decay);
  checker.ResidualPath("encoder_residual_attention",
                       config.encoder_residual_attention,
                       config.num_encoder_layers, decay);
  checker.ResidualPath("decoder_residual_attention",
                       config.decoder_residual_attention,
                       config.num_decoder_layers, decay);
  checker.ResidualPath("cross_residual_attention",
                       config.cross_residual_attention,
                       config.num_decoder_layers, decay);
  checker.Check(
      config.layer_norm_epsilon > 0 && std::isfinite(config.layer_norm_epsilon),
      "layer_norm_epsilon", "above 0", config.layer_norm_epsilon);
  return checker.status();
}

int64_t CountParameters(const EncoderDecoderConfig& config) {
  const int64_t d = config.hidden_size;
  const int64_t heads = config.num_attention_heads;
  const int64_t attention = 4 * d * d + 4 * d;
  const int64_t feed_forward =
      2 * d * config.intermediate_size + config.intermediate_size + d;
  // Norms, omegas and alphas of one block, and those behind a stack.
  const auto block = [d](const std::string& sublayer) {
    return sublayer == "rezero" ? 1 : sublayer == "admin" ? 3 * d : 2 * d;
  };
  const auto final_norm = [d](const std::string& sublayer) {
    return sublayer == "pre_norm" ? 2 * d : 0;
  };
  const auto gates = [heads](const std::string& mode, int64_t layers) {
    return mode == "gate" ? heads * (layers - 1) : 0;
  };
  const int64_t tables = config.share_embeddings == "all"       ? 1
                         : config.share_embeddings == "decoder" ? 2
                                                                : 3;
  return tables * config.vocab_size * d +
         config.num_encoder_layers *
             (attention + feed_forward + 2 * block(config.encoder_sublayer)) +
         config.num_decoder_layers * (2 * attention + feed_forward +
                                      3 * block(config.decoder_sublayer)) +
         final_norm(config.encoder_sublayer) +
         final_norm(config.decoder_sublayer) +
         gates(config.encoder_residual_attention, config.num_encoder_layers) +
         gates(config.decoder_residual_attention, config.num_decoder_layers) +
         gates(config.cross_residual_attention, config.num_decoder_layers);
}

}  // namespace etc
