#include "etc/encoder_layer.h"

#include <c10/util/Exception.h>

#include <cmath>
#include <optional>

#include "attention/head_slices.h"
#include "base/initializers.h"
#include "etc/nn/feed_forward.h"

namespace etc {
namespace {

// Gives both streams, in front of a block that they share, the mean of their
// accumulated variances over all tokens.
void PoolVariances(AdminProfile* profile) {
  const auto longs = static_cast<double>(profile->longs.tokens);
  const auto globals = static_cast<double>(profile->globals.tokens);
  const double pooled =
      (longs * profile->longs.variance + globals * profile->globals.variance) /
      (longs + globals);
  profile->longs.variance = pooled;
  profile->globals.variance = pooled;
}

// GPT-2 (Radford et al. 2019): each layer adds two terms to the stream, which
// so has the same variance at any depth.
double OutputFactor(const EtcConfig& config) {
  return config.depth_scaled_initializer
             ? 1.0 / std::sqrt(2.0 *
                               static_cast<double>(config.num_hidden_layers))
             : 1.0;
}

}  // namespace

Sublayer SublayerNamed(const std::string& name) {
  const std::optional<Sublayer> sublayer = SublayerFromName(name);
  TORCH_CHECK(sublayer.has_value(), "there is no sublayer \"", name, "\"");
  return *sublayer;
}

EtcEncoderLayerOptions EncoderLayerOptions(const EtcConfig& config) {
  return {.attention = {.long_hidden_size = config.hidden_size,
                        .global_hidden_size = config.hidden_size,
                        .num_heads = config.num_attention_heads,
                        .head_size = config.head_size(),
                        .local_radius = config.local_radius,
                        .relative_vocab_size =
                            config.relative_vocab_size.value_or(0),
                        .has_long_tokens = config.has_long_tokens,
                        .share_qkv_projections = config.share_qkv_projections,
                        .share_kv_projections = config.share_kv_projections,
                        .share_output_projection =
                            config.share_att_output_projection,
                        .dropout = config.attention_probs_dropout_prob,
                        .initializer_range = config.initializer_range,
                        .output_initializer_factor = OutputFactor(config),
                        .residual_gate_init =
                            config.residual_attention == "gate"
                                ? std::optional(config.residual_gate_init)
                                : std::nullopt},
          .long_intermediate_size = config.intermediate_size,
          .global_intermediate_size = config.intermediate_size,
          .share_feed_forward = config.share_feed_forward_params,
          .activation = ActivationFromName(config.hidden_act),
          .sublayer = SublayerNamed(config.sublayer),
          .hidden_dropout = config.hidden_dropout_prob,
          .layer_norm_epsilon = config.layer_norm_epsilon};
}

FeedForwardBlockImpl::FeedForwardBlockImpl(
    int64_t hidden_size, int64_t intermediate_size,
    const EtcEncoderLayerOptions& options)
    : activation_(options.activation),
      dropout_(options.hidden_dropout),
      activation_dropout_(options.activation_dropout) {
  const double range = options.attention.initializer_range;
  intermediate_ = register_module(
      "intermediate", MakeLinear(hidden_size, intermediate_size, range));
  output_ = register_module(
      "output",
      MakeLinear(intermediate_size, hidden_size,
                 range * options.attention.output_initializer_factor));
  connection_ =
      ResidualConnection({.sublayer = options.sublayer,
                          .hidden_size = hidden_size,
                          .layer_norm_epsilon = options.layer_norm_epsilon},
                         this);
}

torch::Tensor FeedForwardBlockImpl::forward(const torch::Tensor& input,
                                            ProfiledStream* profile,
                                            int64_t first_row) {
  if (input.numel() == 0) {  // see ResidualConnection
    return input;
  }
  const torch::Tensor change =  // without the bias
      FeedForward(
          {.input = connection_.Begin(input),
           .intermediate_weight = products_.Weight(intermediate_->weight),
           .intermediate_bias = intermediate_->bias,
           .output_weight = products_.Weight(output_->weight),
           .activation = activation_,
           .dropout = is_training() ? activation_dropout_ : 0.0});
  return connection_.End({.change = change,
                          .bias = output_->bias,
                          .residual = input,
                          .dropout = is_training() ? dropout_ : 0.0,
                          .first_row = first_row},
                         profile);
}

EtcEncoderLayerImpl::EtcEncoderLayerImpl(const EtcEncoderLayerOptions& options)
    : options_(options) {
  const int64_t long_size = options.attention.long_hidden_size;
  const int64_t global_size = options.attention.global_hidden_size;
  TORCH_CHECK(
      !options.share_feed_forward ||
          (long_size == global_size &&
           options.long_intermediate_size == options.global_intermediate_size),
      "a shared feed-forward block needs equal sizes, but hidden sizes "
      "are ",
      long_size, " and ", global_size, ", intermediate sizes ",
      options.long_intermediate_size, " and ",
      options.global_intermediate_size);
  TORCH_CHECK(options.attention.has_long_tokens || options.share_feed_forward,
              "without long tokens the feed-forward block should be shared");
  attention_ =
      register_module("attention", GlobalLocalAttention(options.attention));
  const auto connection = [&](int64_t size, const char* prefix) {
    return ResidualConnection({.sublayer = options.sublayer,
                               .hidden_size = size,
                               .layer_norm_epsilon = options.layer_norm_epsilon,
                               .prefix = prefix},
                              this);
  };
  if (options.attention.has_long_tokens) {
    long_connection_ = connection(long_size, "long_attention_");
  }
  global_connection_ = connection(global_size, "global_attention_");
  long_feed_forward_ = register_module(
      options.share_feed_forward ? "feed_forward" : "long_feed_forward",
      FeedForwardBlock(long_size, options.long_intermediate_size, options));
  global_feed_forward_ =
      options.share_feed_forward
          ? long_feed_forward_
          : register_module(
                "global_feed_forward",
                FeedForwardBlock(global_size, options.global_intermediate_size,
                                 options));
}

void EtcEncoderLayerImpl::set_linear_precision(LinearPrecision precision) {
  attention_->set_linear_precision(precision);
  long_feed_forward_->set_linear_precision(precision);
  global_feed_forward_->set_linear_precision(precision);
}

LayerModes EtcEncoderLayerImpl::modes() const {
  LayerModes modes = {.is_training = {is_training()},
                      .implementation = attention_->options().implementation,
                      .precision = attention_->linear_precision()};
  for (const auto& module : modules(/*include_self=*/false)) {
    modes.is_training.push_back(module->is_training());
  }
  return modes;
}

void EtcEncoderLayerImpl::CheckModes(const LayerModes& of_forward) const {
  const auto check = [](bool is_same, const char* what) {
    TORCH_CHECK(is_same, what,
                " changed between the forward and the backward pass, which "
                "computes layers again (gradient checkpointing, layers in "
                "slices); it should change after backward()");
  };
  const LayerModes now = modes();
  check(now.is_training == of_forward.is_training,
        "the training mode (train(), eval())");
  check(now.implementation == of_forward.implementation,
        "the implementation of attention");
  check(now.precision == of_forward.precision,
        "the precision of linear layers");
}

AttentionView EtcEncoderLayerImpl::Inspect(
    const EncoderState& state, const AttentionInputs& attention,
    const ResidualOptions& residual, const AttentionSelection& which) const {
  const torch::NoGradGuard no_grad;
  return attention_->Inspect(
      long_connection_.Begin(state.long_states),
      global_connection_.Begin(state.global_states), attention,
      {.residual = residual, .previous = state.scores}, which);
}

SparseAttentionInput EtcEncoderLayerImpl::Softmax(
    QuerySide side, const EncoderState& state, const AttentionInputs& attention,
    const ResidualOptions& residual) const {
  const torch::NoGradGuard no_grad;
  return attention_->Softmax(side, long_connection_.Begin(state.long_states),
                             global_connection_.Begin(state.global_states),
                             attention,
                             {.residual = residual, .previous = state.scores});
}

LayerStatistics EtcEncoderLayerImpl::Measure(const EncoderState& state,
                                             const AttentionInputs& attention,
                                             const ResidualOptions& residual,
                                             const OutputRows& rows) const {
  const torch::NoGradGuard no_grad;
  return attention_->Measure(
      long_connection_.Begin(state.long_states),
      global_connection_.Begin(state.global_states), attention,
      {.residual = residual, .previous = state.scores}, rows);
}

torch::Tensor EtcEncoderLayerImpl::AttentionInput(
    QuerySide side, const torch::Tensor& stream) const {
  return (side == QuerySide::kLong ? long_connection_ : global_connection_)
      .Begin(stream);
}

torch::Tensor EtcEncoderLayerImpl::Finish(QuerySide side,
                                          const LinearInput& contexts,
                                          const torch::Tensor& stream,
                                          int64_t first_row) {
  const bool is_long = side == QuerySide::kLong;
  const torch::Tensor attended =
      (is_long ? long_connection_ : global_connection_)
          .End({.change = HeadSlices(attention_).Output(side, contexts),
                .residual = stream,
                .dropout = hidden_dropout(),
                .first_row = first_row});
  return (is_long ? long_feed_forward_ : global_feed_forward_)
      ->forward(attended, /*profile=*/nullptr, first_row);
}

EncoderState EtcEncoderLayerImpl::forward(const EncoderState& state,
                                          const AttentionInputs& attention,
                                          const ResidualOptions& residual,
                                          const OutputRows& rows,
                                          AdminProfile* profile) {
  const GlobalLocalAttentionOutput change = attention_->forward(
      long_connection_.Begin(state.long_states),
      global_connection_.Begin(state.global_states), attention,
      {.residual = residual, .previous = state.scores}, rows);
  const double dropout = hidden_dropout();
  ProfiledStream* const of_long = profile ? &profile->longs : nullptr;
  ProfiledStream* const of_global = profile ? &profile->globals : nullptr;
  const torch::Tensor longs =
      long_connection_.End({.change = change.long_output,
                            .residual = RowsOf(state.long_states, rows.longs),
                            .dropout = dropout},
                           of_long);
  const torch::Tensor globals = global_connection_.End(
      {.change = change.global_output,
       .residual = RowsOf(state.global_states, rows.globals),
       .dropout = dropout},
      of_global);
  if (profile != nullptr && options_.share_feed_forward) {
    PoolVariances(profile);
  }
  return {.long_states = long_feed_forward_->forward(longs, of_long),
          .global_states = global_feed_forward_->forward(globals, of_global),
          .scores = change.scores};
}

}  // namespace etc
