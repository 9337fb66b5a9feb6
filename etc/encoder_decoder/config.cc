#include "etc/encoder_decoder/config.h"

#include "absl/strings/str_cat.h"
#include "base/fields.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "etc/encoder_decoder/config_fields.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

static_assert(HasAllFields<EncoderDecoderConfig>());

// Checks several fields at once, each of which is within its bounds.
void CheckTogether(const EncoderDecoderConfig& config,
                   FieldMistakes* mistakes) {
  if (!mistakes->ok()) {
    return;
  }
  mistakes->Check(config.hidden_size % config.num_attention_heads == 0,
                  "hidden_size",
                  absl::StrCat("a multiple of num_attention_heads (",
                               config.num_attention_heads, ")"),
                  config.hidden_size);
  const double decay = config.residual_decay;
  CheckDecayOfDepth(config.encoder_residual_attention,
                    config.num_encoder_layers, decay, mistakes);
  CheckDecayOfDepth(config.decoder_residual_attention,
                    config.num_decoder_layers, decay, mistakes);
  CheckDecayOfDepth(config.cross_residual_attention, config.num_decoder_layers,
                    decay, mistakes);
}

}  // namespace

absl::StatusOr<EncoderDecoderConfig> EncoderDecoderConfigFromJson(
    const nlohmann::json& json, const std::string& source) {
  EncoderDecoderConfig config;
  JsonObjectReader reader(json, source);
  ReadFields(&reader, &config);
  // Unknown fields come first: a misspelt one may be why others disagree.
  ETC_RETURN_IF_ERROR(reader.Finish());
  FieldMistakes mistakes(source);
  CheckTogether(config, &mistakes);
  ETC_RETURN_IF_ERROR(mistakes.status());
  return config;
}

std::string EncoderDecoderConfigToJson(const EncoderDecoderConfig& config) {
  nlohmann::json fields = nlohmann::json::object();
  WriteFields(config, &fields);
  return JsonText(fields, /*indent=*/2) + "\n";
}

absl::Status CheckEncoderDecoderConfig(const EncoderDecoderConfig& config,
                                       const std::string& source) {
  FieldMistakes mistakes(source);
  CheckFields(config, &mistakes);
  CheckTogether(config, &mistakes);
  return mistakes.status();
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
