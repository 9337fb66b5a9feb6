#ifndef ETC_ETC_CONFIG_FIELDS_H_
#define ETC_ETC_CONFIG_FIELDS_H_

#include <cstdint>
#include <string>
#include <tuple>

#include "absl/strings/string_view.h"
#include "attention/pattern.h"
#include "attention/residual_attention.h"
#include "base/fields.h"
#include "base/json_reader.h"
#include "etc/config.h"

namespace etc {

// --- Rules of both models, EtcConfig and EncoderDecoderConfig ----------------

// In the order of the enum Sublayer.
inline constexpr absl::string_view kSublayers[] = {"post_norm", "pre_norm",
                                                   "rezero", "admin"};
inline constexpr absl::string_view kActivations[] = {"relu", "gelu", "gelu_erf",
                                                     "tanh", "linear"};
inline constexpr auto kResidualModes = NamesOf(kResidualAttentionNames);

// Ids and lengths are 32 bits wide, and products of two sizes fit 64; beyond
// that, a hundred times the sizes of any published model: a zero too many
// should be refused before a machine is frozen with it.

// Rows of a token table.
inline constexpr int64_t kMostRows = int64_t{1} << 24;
// Positions, lengths and distances.
inline constexpr int64_t kMostTokens = int64_t{1} << 20;

inline constexpr FieldRule kWidthRule = {.least = 1, .most = 1 << 20};
inline constexpr FieldRule kLayersRule = {.least = 1, .most = 4096};
inline constexpr FieldRule kHeadsRule = {.least = 1, .most = 4096};
inline constexpr FieldRule kDropoutRule = {.least = 0, .below = 1};
// Bounds of numbers that models have as float32.
inline constexpr FieldRule kEpsilonRule = {.least = 1e-30, .most = 1};
inline constexpr FieldRule kGateRule = {.least = -1e6, .most = 1e6};

// Notes a mistake if `decay`, the residual_decay of a stack of `layers` layers
// with the mode `mode`, is too small for the deepest one (kLargestDecayFactor).
void CheckDecayOfDepth(const std::string& mode, int64_t layers, double decay,
                       FieldMistakes* mistakes);

// --- The encoder -------------------------------------------------------------

template <>
struct ConfigTable<EtcConfig> {
  using C = EtcConfig;
  // Reads a name in upper or lower case; null and "" are "linear", as in the
  // official code.
  static void ReadActivation(const std::string& field, const FieldRule& rule,
                             JsonObjectReader* reader, std::string* name);
  // Reads the official field for `sublayer`, beside which it may stand.
  static void ReadPreActivationOrder(JsonObjectReader& reader,
                                     EtcConfig* config);

  static constexpr char kPreActivationOrder[] = "use_pre_activation_order";
  static constexpr auto kFields = std::make_tuple(
      Field("vocab_size", &C::vocab_size,
            "rows of the token table; if absent, those of `init` or the file "
            "`model.path`, else the pieces of the vocabulary",
            {.least = 1, .most = kMostRows, .null_is_zero = true}),
      Field("segment_vocab_size", &C::segment_vocab_size,
            "rows of the table of types", {.least = 1, .most = 1 << 16}),
      Field("embedding_size", &C::embedding_size,
            "width of the token table; null: `model.hidden_size`", kWidthRule),
      Field("hidden_size", &C::hidden_size, "features of a token",
            {.least = kWidthRule.least,
             .most = kWidthRule.most,
             .more_bounds = "a multiple of `model.num_attention_heads` where "
                            "`model.att_size_per_head` is null"}),
      Field("num_hidden_layers", &C::num_hidden_layers, "layers", kLayersRule),
      Field("num_attention_heads", &C::num_attention_heads, "heads of a layer",
            kHeadsRule),
      Field("local_radius", &C::local_radius,
            "tokens that a long token sees to each side",
            {.least = 1, .most = kMostLocalRadius}),
      Field("att_size_per_head", &C::att_size_per_head,
            "features of a head; null: `model.hidden_size` / "
            "`model.num_attention_heads`",
            kWidthRule),
      Field("relative_pos_max_distance", &C::relative_pos_max_distance,
            "largest distance with a relative id of its own; 0: no relative "
            "ids",
            {.least = 0, .most = kMostTokens}),
      Field("relative_vocab_size", &C::relative_vocab_size,
            "rows of each table of relative ids",
            {.least = 1,
             .most = 4 * kMostTokens,
             .more_bounds =
                 "at least 2 × `model.relative_pos_max_distance` + 4"}),
      Field("max_absolute_position_embeddings",
            &C::max_absolute_position_embeddings,
            "rows of each table of absolute positions; 0: no such tables",
            {.least = 0, .most = kMostTokens}),
      Field("intermediate_size", &C::intermediate_size,
            "features within the feed-forward block", kWidthRule),
      Field("hidden_act", &C::hidden_act,
            "`\"relu\"`, `\"gelu\"` (the tanh form), `\"gelu_erf\"`, "
            "`\"tanh\"` or `\"linear\"`",
            {.one_of = kActivations}, ReadActivation),
      Field("hidden_dropout_prob", &C::hidden_dropout_prob,
            "dropout of embeddings and blocks", kDropoutRule),
      Field("attention_probs_dropout_prob", &C::attention_probs_dropout_prob,
            "dropout of attention weights", kDropoutRule),
      Field("initializer_range", &C::initializer_range,
            "standard deviation of random kernels and tables",
            {.above = 0, .most = 100}),
      Field("share_feed_forward_params", &C::share_feed_forward_params,
            "long and global tokens have the same feed-forward block"),
      Field("share_kv_projections", &C::share_kv_projections,
            "the blocks of a softmax have the same keys and values"),
      Field("share_qkv_projections", &C::share_qkv_projections,
            "long and global tokens have the same queries, keys and values"),
      Field("share_att_output_projection", &C::share_att_output_projection,
            "long and global tokens have the same projection of attention's "
            "output"),
      Field("use_hard_g2l_mask", &C::use_hard_g2l_mask,
            "a global token sees the long tokens of its own sentence or "
            "paragraph only"),
      Field("use_hard_l2g_mask", &C::use_hard_l2g_mask,
            "a long token sees the global tokens of its own sentence or "
            "paragraph only"),
      Field("grad_checkpointing_period", &C::grad_checkpointing_period,
            "layers that backward computes again at a time; 0: none",
            {.least = 0, .most = kLayersRule.most}),
      Field("sublayer", &C::sublayer,
            "`\"post_norm\"`, `\"pre_norm\"`, `\"rezero\"` or `\"admin\"`: how "
            "a layer adds its output ([formulas](model.md#41-residualblock)); "
            "a run from random weights sets the omegas of `\"admin\"` by its "
            "first micro-batch",
            {.one_of = kSublayers}),
      Field(kPreActivationOrder, ReadPreActivationOrder,
            "the official name of `model.sublayer` `\"pre_norm\"` (true) and "
            "`\"post_norm\"`; where both are given, they must agree",
            {.default_text = "`false`", .type_text = "true or false"}),
      Field("residual_attention", &C::residual_attention,
            "the mode where `residual_attention` is absent",
            {.one_of = kResidualModes}),
      Field("residual_gate_init", &C::residual_gate_init,
            "what the gates of `\"gate\"` begin with, unless `init` has gates; "
            "0 computes what `\"off\"` does, 1 what `\"sum\"` does",
            kGateRule),
      Field("residual_decay", &C::residual_decay,
            "β of `\"decay\"`, between 0 and 1; 1 / βⁿ of the last layer must "
            "be below 10,000: β above 0.433 for 12 layers, 0.671 for 24",
            {.above = 0, .below = 1}),
      Field("layer_norm_epsilon", &C::layer_norm_epsilon,
            "added to the variance by LayerNorms; RoBERTa's is 1e-5",
            kEpsilonRule),
      Field("has_long_tokens", &C::has_long_tokens,
            "false: BERT, whose tokens are all global; keeps a BERT in `init` "
            "from being lifted"),
      Field("final_layer_norm", &C::final_layer_norm,
            "a LayerNorm behind the last layer, with `\"pre_norm\"`"),
      Field("depth_scaled_initializer", &C::depth_scaled_initializer,
            "kernels that write into the residual stream begin smaller, as in "
            "GPT-2"));
};

}  // namespace etc

#endif  // ETC_ETC_CONFIG_FIELDS_H_
