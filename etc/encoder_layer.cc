#include "etc/encoder_layer.h"

#include <c10/util/Exception.h>

#include <cmath>

#include "base/initializers.h"
#include "etc/embedding.h"
#include "etc/nn/feed_forward.h"
#include "etc/nn/residual_norm.h"

namespace etc {
namespace {

// Returns true if a stream, [..., H], has no tokens. Its blocks are then left
// out, because computing them would give their weights gradients of zeros, as
// large as the weights.
bool IsEmpty(const torch::Tensor& stream) { return stream.numel() == 0; }

// Returns the input of a block's computation: the stream, normalised with
// Pre-LN.
torch::Tensor BeginOfBlock(const torch::Tensor& stream, bool pre_layer_norm,
                           const torch::nn::LayerNorm& norm) {
  return pre_layer_norm && !IsEmpty(stream) ? ApplyLayerNorm(stream, norm)
                                            : stream;
}

// Back into the stream: after the norm, or with the norm yet to come.
torch::Tensor EndOfBlock(const ResidualInput& input, bool pre_layer_norm,
                         torch::nn::LayerNorm& norm) {
  if (IsEmpty(input.residual)) {
    return input.residual;
  }
  return pre_layer_norm ? ResidualSum(input)
                        : ResidualNorm(input, {.weight = norm->weight,
                                               .bias = norm->bias,
                                               .epsilon = norm->options.eps()});
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
          .pre_layer_norm = config.use_pre_activation_order,
          .hidden_dropout = config.hidden_dropout_prob,
          .layer_norm_epsilon = config.layer_norm_epsilon};
}

FeedForwardBlockImpl::FeedForwardBlockImpl(
    int64_t hidden_size, int64_t intermediate_size,
    const EtcEncoderLayerOptions& options)
    : activation_(options.activation),
      pre_layer_norm_(options.pre_layer_norm),
      dropout_(options.hidden_dropout) {
  const double range = options.attention.initializer_range;
  intermediate_ = register_module(
      "intermediate", MakeLinear(hidden_size, intermediate_size, range));
  output_ = register_module(
      "output",
      MakeLinear(intermediate_size, hidden_size,
                 range * options.attention.output_initializer_factor));
  norm_ = register_module(
      "norm", MakeLayerNorm(hidden_size, options.layer_norm_epsilon));
}

torch::Tensor FeedForwardBlockImpl::forward(const torch::Tensor& input) {
  if (IsEmpty(input)) {
    return input;
  }
  const torch::Tensor change =  // without the bias
      FeedForward(
          {.input = BeginOfBlock(input, pre_layer_norm_, norm_),
           .intermediate_weight = products_.Weight(intermediate_->weight),
           .intermediate_bias = intermediate_->bias,
           .output_weight = products_.Weight(output_->weight),
           .activation = activation_});
  return EndOfBlock({.change = change,
                     .bias = output_->bias,
                     .residual = input,
                     .dropout = is_training() ? dropout_ : 0.0},
                    pre_layer_norm_, norm_);
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
  const double epsilon = options.layer_norm_epsilon;
  if (options.attention.has_long_tokens) {
    long_norm_ = register_module("long_attention_norm",
                                 MakeLayerNorm(long_size, epsilon));
  }
  global_norm_ = register_module("global_attention_norm",
                                 MakeLayerNorm(global_size, epsilon));
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

AttentionView EtcEncoderLayerImpl::Inspect(const EncoderState& state,
                                           const AttentionInputs& attention,
                                           const ResidualOptions& residual,
                                           const AttentionSelection& which) {
  const torch::NoGradGuard no_grad;
  const bool pre = options_.pre_layer_norm;
  return attention_->Inspect(
      BeginOfBlock(state.long_states, pre, long_norm_),
      BeginOfBlock(state.global_states, pre, global_norm_), attention,
      {.mode = residual.mode,
       .previous = state.scores,
       .decay = residual.decay},
      which);
}

EncoderState EtcEncoderLayerImpl::forward(const EncoderState& state,
                                          const AttentionInputs& attention,
                                          const ResidualOptions& residual,
                                          const OutputRows& rows) {
  const bool pre = options_.pre_layer_norm;
  const GlobalLocalAttentionOutput change = attention_->forward(
      BeginOfBlock(state.long_states, pre, long_norm_),
      BeginOfBlock(state.global_states, pre, global_norm_), attention,
      {.mode = residual.mode,
       .previous = state.scores,
       .storage = residual.storage,
       .decay = residual.decay},
      rows);
  const double dropout = is_training() ? options_.hidden_dropout : 0.0;
  const torch::Tensor longs =
      EndOfBlock({.change = change.long_output,
                  .residual = RowsOf(state.long_states, rows.longs),
                  .dropout = dropout},
                 pre, long_norm_);
  const torch::Tensor globals =
      EndOfBlock({.change = change.global_output,
                  .residual = RowsOf(state.global_states, rows.globals),
                  .dropout = dropout},
                 pre, global_norm_);
  return {.long_states = long_feed_forward_->forward(longs),
          .global_states = global_feed_forward_->forward(globals),
          .scores = change.scores};
}

}  // namespace etc
