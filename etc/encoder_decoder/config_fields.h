#ifndef ETC_ETC_ENCODER_DECODER_CONFIG_FIELDS_H_
#define ETC_ETC_ENCODER_DECODER_CONFIG_FIELDS_H_

#include <tuple>

#include "absl/strings/string_view.h"
#include "base/fields.h"
#include "etc/config_fields.h"
#include "etc/encoder_decoder/config.h"

namespace etc {

template <>
struct ConfigTable<EncoderDecoderConfig> {
  using C = EncoderDecoderConfig;
  static constexpr absl::string_view kSharing[] = {"all", "decoder", "none"};
  static constexpr FieldRule kSublayer = {.one_of = kSublayers};
  static constexpr FieldRule kMode = {.one_of = kResidualModes,
                                      .default_text = "`residual_attention`"};
  static constexpr FieldRule kLength = {.least = 1, .most = kMostTokens};
  static constexpr auto kFields = std::make_tuple(
      Field("vocab_size", &C::vocab_size, "rows of each token table",
            {.above = kUnknownId + 1,  // the special ids
             .most = kMostRows,
             .null_is_zero = true,
             .default_text = "ids of the vocabulary",
             .more_bounds = "4 of them special ids"}),
      Field("share_embeddings", &C::share_embeddings,
            "who has one token table: `\"all\"`, encoder, decoder and output; "
            "`\"decoder\"`, the latter two; or `\"none\"`",
            {.one_of = kSharing}),
      Field("hidden_size", &C::hidden_size,
            "features of a token, a multiple of `num_attention_heads`",
            {.least = 4, .most = kWidthRule.most}),
      Field("intermediate_size", &C::intermediate_size,
            "features within the feed-forward block", kWidthRule),
      Field("num_attention_heads", &C::num_attention_heads, "heads of a layer",
            kHeadsRule),
      Field("num_encoder_layers", &C::num_encoder_layers,
            "layers of the encoder", kLayersRule),
      Field("num_decoder_layers", &C::num_decoder_layers,
            "layers of the decoder", kLayersRule),
      Field("max_source_positions", &C::max_source_positions,
            "most tokens of a source", kLength),
      Field("max_target_positions", &C::max_target_positions,
            "most tokens of a translation", kLength),
      Field("hidden_act", &C::hidden_act,
            "`\"relu\"`, `\"gelu\"` (the tanh form), `\"gelu_erf\"`, "
            "`\"tanh\"` or `\"linear\"`",
            {.one_of = kActivations}),
      Field("hidden_dropout_prob", &C::hidden_dropout_prob,
            "dropout of embeddings and blocks", kDropoutRule),
      Field("attention_probs_dropout_prob", &C::attention_probs_dropout_prob,
            "dropout of attention weights", kDropoutRule),
      Field("activation_dropout_prob", &C::activation_dropout_prob,
            "dropout within the feed-forward block", kDropoutRule),
      Field("encoder_sublayer", &C::encoder_sublayer,
            "how a layer of the encoder adds its output: `\"post_norm\"`, "
            "`\"pre_norm\"`, `\"rezero\"` or `\"admin\"`",
            kSublayer),
      Field("decoder_sublayer", &C::decoder_sublayer, "the same of the decoder",
            kSublayer),
      Field("encoder_residual_attention", &C::encoder_residual_attention,
            "residual scores of the encoder's self attention", kMode),
      Field("decoder_residual_attention", &C::decoder_residual_attention,
            "residual scores of the decoder's self attention", kMode),
      Field("cross_residual_attention", &C::cross_residual_attention,
            "residual scores of cross attention", kMode),
      Field("residual_gate_init", &C::residual_gate_init,
            "what the gates of `\"gate\"` begin with, unless `init` has gates",
            kGateRule),
      Field("residual_decay", &C::residual_decay,
            "β of `\"decay\"`, between 0 and 1", {.above = 0, .below = 1}),
      Field("layer_norm_epsilon", &C::layer_norm_epsilon,
            "added to the variance by LayerNorms", kEpsilonRule));
};

}  // namespace etc

#endif  // ETC_ETC_ENCODER_DECODER_CONFIG_FIELDS_H_
