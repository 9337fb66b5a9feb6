#ifndef ETC_ETC_ENCODER_DECODER_CONFIG_H_
#define ETC_ETC_ENCODER_DECODER_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "attention/residual_attention.h"
#include "nlohmann/json_fwd.hpp"

namespace etc {

// Ids that mean the same in every vocabulary of an encoder-decoder, fairseq's.
// 0 is <s>, which no sequence has.
inline constexpr int64_t kPaddingId = 1;
inline constexpr int64_t kEndId = 2;  // ends a sequence; the decoder's start
inline constexpr int64_t kUnknownId = 3;

// The encoder-decoder Transformer of Vaswani et al. (2017) with fairseq's
// conventions (Ott et al. 2019, architecture transformer_wmt_en_de), as ADMIN
// (Liu et al. 2020) and RealFormer (He et al. 2021, section 4.2) use it. Field
// names are those of the file; etc/encoder_decoder/config_fields.h has their
// bounds.
struct EncoderDecoderConfig {
  // Rows of each token table. No default: 0 stands for "not given".
  int64_t vocab_size = 0;
  // "all": one table for encoder, decoder and output; "decoder": one for
  // decoder and output; "none": three.
  std::string share_embeddings = "all";
  // d, at least 4 because of the sinusoidal positions.
  int64_t hidden_size = 512;
  int64_t intermediate_size = 2048;
  int64_t num_attention_heads = 8;
  int64_t num_encoder_layers = 6;
  int64_t num_decoder_layers = 6;
  // Largest lengths, padding included.
  int64_t max_source_positions = 1024;
  int64_t max_target_positions = 1024;
  // As EtcConfig::hidden_act.
  std::string hidden_act = "relu";
  // Dropout of embeddings and of each block's output, of attention weights, and
  // of activations in the feed-forward block. The published recipes have 0.1
  // for all three.
  double hidden_dropout_prob = 0.1;
  double attention_probs_dropout_prob = 0.0;
  double activation_dropout_prob = 0.0;
  // The residual connection of blocks (Sublayer, etc/config.h). With
  // "pre_norm" a LayerNorm follows the last layer of the stack. With "admin"
  // omegas begin with InitialAdminOmega (etc/encoder_decoder/admin_omegas.h).
  std::string encoder_sublayer = "post_norm";
  std::string decoder_sublayer = "post_norm";
  // Residual attention scores of the three paths (residual_attention.h), each
  // carried from layer to layer of its own stack and counted there.
  std::string encoder_residual_attention = "off";
  std::string decoder_residual_attention = "off";  // decoder self attention
  std::string cross_residual_attention = "off";
  // As in EtcConfig, for all paths.
  double residual_gate_init = 0.0;
  double residual_decay = kDefaultResidualDecay;
  double layer_norm_epsilon = 1e-5;

  int64_t head_size() const {
    return num_attention_heads > 0 ? hidden_size / num_attention_heads : 0;
  }
};

// Reads the fields of `json`; absent ones keep their default, a null vocab_size
// is "not given". `source` starts each message.
//   kInvalidArgument  a wrong type, an unknown field, or errors of
//                     CheckEncoderDecoderConfig
absl::StatusOr<EncoderDecoderConfig> EncoderDecoderConfigFromJson(
    const nlohmann::json& json, const std::string& source);

// All fields, sorted, indented by 2, newline at the end.
std::string EncoderDecoderConfigToJson(const EncoderDecoderConfig& config);

// kInvalidArgument, naming the field, for values out of range and combinations
// that cannot be built. A vocab_size of 0 passes: a vocabulary may still set
// it.
absl::Status CheckEncoderDecoderConfig(const EncoderDecoderConfig& config,
                                       const std::string& source);

// Trained numbers of the model: of a stack, layers times those of its blocks
// (doc/translation.md 1.7).
int64_t CountParameters(const EncoderDecoderConfig& config);

}  // namespace etc

#endif  // ETC_ETC_ENCODER_DECODER_CONFIG_H_
