#ifndef ETC_ETC_CONFIG_H_
#define ETC_ETC_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attention/residual_attention.h"
#include "nlohmann/json_fwd.hpp"

namespace etc {

// How a layer adds the output of one of its blocks f to the stream x, with D
// dropout and LN LayerNorm (doc/model.md 4.1, 4.2):
enum class Sublayer {
  kPostNorm,  // "post_norm": LN(x + D(f(x)))
  kPreNorm,   // "pre_norm": x + D(f(LN(x)))
  // "rezero": x + alpha D(f(x)), alpha one trained number that starts at 0
  // (Bachlechner et al. 2020)
  kReZero,
  // "admin": LN(omega x + D(f(x))), omega a trained vector (Liu et al. 2020;
  // EtcModelImpl::ProfileNextPass)
  kAdmin,
};

// The official `etc_config.json` (doc/model.md 1.1) and eight fields of ours.
// Field names are those of the file; etc/config_fields.h has their bounds.
struct EtcConfig {
  // Rows of the token table. No default: 0 stands for "not given".
  int64_t vocab_size = 0;
  int64_t segment_vocab_size = 16;
  // Width of the token table; absent: `hidden_size`.
  std::optional<int64_t> embedding_size = std::nullopt;
  int64_t hidden_size = 768;
  int64_t num_hidden_layers = 12;
  int64_t num_attention_heads = 12;
  // Tokens a long token sees to each side.
  int64_t local_radius = 84;
  // Features per head; absent: hidden_size / num_attention_heads.
  std::optional<int64_t> att_size_per_head = std::nullopt;
  // Largest distance with a relative id of its own; 0: no relative ids.
  int64_t relative_pos_max_distance = 12;
  // Rows of each relative table; absent only without relative ids.
  std::optional<int64_t> relative_vocab_size = 32;
  // Rows of each absolute position table; 0: no such tables.
  int64_t max_absolute_position_embeddings = 0;
  int64_t intermediate_size = 3072;
  // "relu", "gelu" (the tanh form), "tanh" or "linear"; beyond the official
  // ones "gelu_erf", the exact form of HuggingFace's BERT.
  std::string hidden_act = "gelu";
  double hidden_dropout_prob = 0.1;
  double attention_probs_dropout_prob = 0.1;
  // Standard deviation of the truncated normal for kernels and tables.
  double initializer_range = 0.02;
  bool share_feed_forward_params = true;
  bool share_kv_projections = false;
  bool share_qkv_projections = true;
  bool share_att_output_projection = false;
  bool use_hard_g2l_mask = false;
  bool use_hard_l2g_mask = false;
  // Layers per recomputed chain; 0: no gradient checkpointing
  // (doc/model.md 4.4).
  int64_t grad_checkpointing_period = 0;

  // Fields from here on are not in the official file, whose readers ignore
  // them.
  //
  // "post_norm", "pre_norm", "rezero" or "admin" (Sublayer). The official file
  // has `use_pre_activation_order` instead, true for "pre_norm": it is read
  // where this field is absent, and written beside it.
  std::string sublayer = "post_norm";
  // "off", "sum", "mean", "decay" or "gate" (residual_attention.h).
  std::string residual_attention = "off";
  // Value that the gates of "gate" begin with, where no weights give another:
  // 0 computes what "off" does, 1 what "sum" does.
  double residual_gate_init = 0.0;
  // beta of "decay", in (0, 1), with beta^-(num_hidden_layers - 1) below
  // kLargestDecayFactor.
  double residual_decay = kDefaultResidualDecay;
  // Added to the variance by LayerNorms; RoBERTa's is 1e-5.
  double layer_norm_epsilon = 1e-12;
  // False for BERT, whose tokens are all global (etc/bert_input.h): parameters
  // that only long tokens would read do not exist, and it has as many as BERT.
  // Then all that can be shared is.
  bool has_long_tokens = true;
  // Behind the last layer of a model with sublayer "pre_norm", one LayerNorm
  // for each stream. Pre-LN Transformers have it, ETC's code does not
  // (doc/model.md 4.2).
  bool final_layer_norm = false;
  // True if the two kernels of a layer that write into the residual stream
  // (attention output, second of the feed-forward block) start with
  // initializer_range / sqrt(2 num_hidden_layers), as in GPT-2: for Pre-LN
  // (doc/pretraining.md 6.2).
  bool depth_scaled_initializer = false;

  int64_t head_size() const {
    return att_size_per_head.value_or(
        num_attention_heads > 0 ? hidden_size / num_attention_heads : 0);
  }
  int64_t token_embedding_size() const {
    return embedding_size.value_or(hidden_size);
  }
};

// The way of that name; nullopt for any other.
std::optional<Sublayer> SublayerFromName(absl::string_view name);
const char* SublayerName(Sublayer sublayer);

// The published sizes:
//
//   base, large   ETC (doc/model.md 1.2): unshared projections, hard g2l mask,
//                 vocabulary of the released tokenizer (for large, of
//                 RoBERTa's)
//   bert_small, bert_base, bert_large, bert_xlarge
//                 BERT as in RealFormer's Table 1 (doc/pretraining.md 6.2),
//                 with BERT's vocabulary; Post-LN, residual attention off
//
// kNotFound, with the names, for any other name.
absl::StatusOr<EtcConfig> EtcConfigPreset(absl::string_view name);

// Returns true if vocab_size and relative_vocab_size of the preset are guesses,
// because they are not published: those of "large".
bool GuessesVocabularies(absl::string_view preset);

// Reads the fields of `json`; absent ones keep their default. A null means
// "absent" for the optional fields and vocab_size, and "linear" for hidden_act,
// whose case does not matter. `source` starts each message. Unknown fields are
// no error (the official reader ignores them): their names are appended to
// `*unknown_fields` for a warning.
//   kInvalidArgument  a wrong type, sublayer and use_pre_activation_order that
//                     contradict each other, or errors of CheckEtcConfig
absl::StatusOr<EtcConfig> EtcConfigFromJson(
    const nlohmann::json& json, const std::string& source,
    std::vector<std::string>* unknown_fields);

// The same from a file.
absl::StatusOr<EtcConfig> ReadEtcConfig(
    const std::string& path, std::vector<std::string>* unknown_fields);

// All fields and use_pre_activation_order, in the official form: sorted,
// indented by 2, newline at the end.
std::string EtcConfigToJson(const EtcConfig& config);

// kInvalidArgument, naming the field, for values out of range and combinations
// that cannot be built. A vocab_size of 0 passes: a tokenizer may still set it.
absl::Status CheckEtcConfig(const EtcConfig& config, const std::string& source);

}  // namespace etc

#endif  // ETC_ETC_CONFIG_H_
