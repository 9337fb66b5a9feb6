#ifndef ETC_TASKS_TRANSLATION_OPTIONS_H_
#define ETC_TASKS_TRANSLATION_OPTIONS_H_

#include <cstdint>
#include <string>
#include <tuple>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "etc/encoder_decoder/config.h"
#include "tasks/config/config.h"
#include "tasks/config/config_fields.h"

namespace etc {

// The object "translation" of a configuration, whose field "task" is
// kTranslationTask.
struct TranslationOptions {
  // Tokens of a batch with its padding: sentences times the longest of either
  // side (doc/translation.md 4.1). 0: no limit of sentences.
  int64_t max_tokens = 4096;
  int64_t max_sentences = 0;
  // epsilon of the loss (doc/translation.md 4.2).
  double label_smoothing = 0.1;
  // "closed_form" or "first_batch": the omegas with which a model with sublayer
  // "admin" begins (etc/encoder_decoder/admin_omegas.h), or the file of
  // omegas that ADMIN's code writes.
  std::string admin_omegas = "closed_form";
  // Decoding (doc/translation.md 7), for `realetc translate` where it is not
  // told otherwise.
  int64_t beam_size = 5;
  double length_penalty = 1.0;
  int64_t max_length = 200;

  bool operator==(const TranslationOptions&) const = default;
};

template <>
struct ConfigTable<TranslationOptions> {
  using O = TranslationOptions;
  static constexpr auto kFields = std::make_tuple(
      Field("max_tokens", &O::max_tokens,
            "tokens of a batch, padding included: sentences times the longest "
            "of either side",
            {.least = 1, .most = 1e9}),
      Field("max_sentences", &O::max_sentences,
            "most sentences of a batch; 0: no limit",
            {.least = 0, .most = 1e9}),
      Field("label_smoothing", &O::label_smoothing,
            "share of the target that is spread over the whole vocabulary",
            {.least = 0, .below = 1}),
      Field("admin_omegas", &O::admin_omegas,
            "the omegas with which `\"admin\"` begins: `\"closed_form\"`, "
            "`\"first_batch\"` (profiled on the run's first batch) or a file "
            "`profile.ratio.init`",
            {.is_path = true}),
      Field("beam_size", &O::beam_size,
            "hypotheses of the beam search of `realetc translate`",
            {.least = 1, .most = 1e6}),
      Field("length_penalty", &O::length_penalty,
            "power of the length by which log-probabilities are divided",
            {.least = 0, .most = 100}),
      Field("max_length", &O::max_length, "most tokens of a translation",
            {.least = 1, .most = 1e6}));
};

// The object "model" of a configuration of translation, for people:
// EncoderDecoderConfigFromJson reads it, with all its bounds.
template <>
struct ConfigTable<EncoderDecoderConfig> {
  using C = EncoderDecoderConfig;
  static constexpr absl::string_view kSharing[] = {"all", "decoder", "none"};
  static constexpr absl::string_view kWays[] = {"post_norm", "pre_norm",
                                                "rezero", "admin"};
  static constexpr FieldRule kMode = {.one_of = ConfigTable<RunConfig>::kModes,
                                      .default_text = "`residual_attention`"};
  static constexpr auto kFields = std::make_tuple(
      Field("vocab_size", &C::vocab_size, "rows of each token table",
            {.default_text = "ids of the vocabulary"}),
      Field("share_embeddings", &C::share_embeddings,
            "who has one token table: `\"all\"`, encoder, decoder and output; "
            "`\"decoder\"`, the latter two; or `\"none\"`",
            {.one_of = kSharing}),
      Field("hidden_size", &C::hidden_size,
            "features of a token, a multiple of `num_attention_heads`"),
      Field("intermediate_size", &C::intermediate_size,
            "features within the feed-forward block"),
      Field("num_attention_heads", &C::num_attention_heads, "heads of a layer"),
      Field("num_encoder_layers", &C::num_encoder_layers,
            "layers of the encoder"),
      Field("num_decoder_layers", &C::num_decoder_layers,
            "layers of the decoder"),
      Field("max_source_positions", &C::max_source_positions,
            "most tokens of a source"),
      Field("max_target_positions", &C::max_target_positions,
            "most tokens of a translation"),
      Field("hidden_act", &C::hidden_act,
            "`\"relu\"`, `\"gelu\"` (the tanh form), `\"gelu_erf\"`, "
            "`\"tanh\"` or `\"linear\"`"),
      Field("hidden_dropout_prob", &C::hidden_dropout_prob,
            "dropout of embeddings and blocks"),
      Field("attention_probs_dropout_prob", &C::attention_probs_dropout_prob,
            "dropout of attention weights"),
      Field("activation_dropout_prob", &C::activation_dropout_prob,
            "dropout within the feed-forward block"),
      Field("encoder_sublayer", &C::encoder_sublayer,
            "how a layer of the encoder adds its output: `\"post_norm\"`, "
            "`\"pre_norm\"`, `\"rezero\"` or `\"admin\"`",
            {.one_of = kWays}),
      Field("decoder_sublayer", &C::decoder_sublayer, "the same of the decoder",
            {.one_of = kWays}),
      Field("encoder_residual_attention", &C::encoder_residual_attention,
            "residual scores of the encoder's self attention", kMode),
      Field("decoder_residual_attention", &C::decoder_residual_attention,
            "residual scores of the decoder's self attention", kMode),
      Field("cross_residual_attention", &C::cross_residual_attention,
            "residual scores of cross attention", kMode),
      Field("residual_gate_init", &C::residual_gate_init,
            "what the gates of `\"gate\"` begin with, unless `init` has gates"),
      Field("residual_decay", &C::residual_decay,
            "β of `\"decay\"`, between 0 and 1"),
      Field("layer_norm_epsilon", &C::layer_norm_epsilon,
            "added to the variance by LayerNorms"));
};

// Values of admin_omegas that are no files.
inline constexpr char kClosedForm[] = "closed_form";
inline constexpr char kFirstBatch[] = "first_batch";

// The options in `config.task_options`.
//   kInvalidArgument  a field that does not exist, a wrong type or value;
//                     train.micro_batch_size is not 1; a field of "tokenizer"
//                     or "data" that decides nothing
absl::StatusOr<TranslationOptions> ReadTranslationOptions(
    const RunConfig& config);

}  // namespace etc

#endif  // ETC_TASKS_TRANSLATION_OPTIONS_H_
