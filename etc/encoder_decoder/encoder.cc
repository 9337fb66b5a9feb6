#include "etc/encoder_decoder/encoder.h"

#include <c10/util/Exception.h>
#include <torch/nn/modules/container/modulelist.h>

#include <utility>

#include "base/check_shape.h"
#include "base/check_tensor.h"
#include "base/stop_guard.h"
#include "etc/encoder_decoder/admin_omegas.h"
#include "etc/encoder_decoder/layers.h"
#include "etc/nn/residual_norm.h"

namespace etc {
namespace {

// `mask`, or trues where there is none: [B, length] bool.
torch::Tensor MaskOrTokens(const torch::Tensor& mask, const char* name,
                           const torch::Tensor& states) {
  const int64_t batch = states.size(0);
  const int64_t length = states.size(1);
  if (!mask.defined()) {
    return torch::ones({batch, length}, states.options().dtype(torch::kBool));
  }
  ETC_CHECK_SHAPE(mask, {batch, length});
  return AsBoolMask(mask, name);
}

// The tokens of a batch that are not padding, [B, length] bool.
torch::Tensor TokensIn(const torch::Tensor& ids) {
  const torch::Tensor mask = ids.ne(kPaddingId);
  const torch::Tensor has_tokens = mask.any(-1);
  TORCH_CHECK(
      has_tokens.all().item<bool>(), "row ",
      has_tokens.logical_not().to(torch::kInt64).argmax().item<int64_t>(),
      " of the ids is padding alone");
  return mask;
}

}  // namespace

DecoderMemory MemoryOfEtc(const EtcOutput& output,
                          const torch::Tensor& global_mask,
                          const torch::Tensor& long_mask) {
  TORCH_CHECK(output.global_output.dim() == 3 && output.long_output.dim() == 3,
              "the encoder's output should be [batch, length, hidden] of both "
              "streams, but is ",
              output.global_output.sizes(), " and ",
              output.long_output.sizes());
  return {.states = torch::cat({output.global_output, output.long_output}, 1),
          .mask = torch::cat(
              {MaskOrTokens(global_mask, "global_mask", output.global_output),
               MaskOrTokens(long_mask, "long_mask", output.long_output)},
              1)};
}

TransformerEncoderImpl::TransformerEncoderImpl(
    const EncoderDecoderConfig& config, TokenEmbedding embedding)
    : config_(CheckedForModules(config)),
      residual_(ResidualOf(config_, config_.encoder_residual_attention)),
      embedding_(std::move(embedding)) {
  torch::nn::ModuleList list;
  for (int64_t i = 0; i < config_.num_encoder_layers; ++i) {
    layers_.push_back(
        std::make_shared<TransformerEncoderLayerImpl>(config_, i));
    list->push_back(layers_.back());
  }
  register_module("layers", list);
  if (config_.encoder_sublayer == "pre_norm") {
    final_norm_ = register_module(
        "final_norm",
        MakeLayerNorm(config_.hidden_size, config_.layer_norm_epsilon));
  }
  FillOmegas(Omegas());
}

DecoderMemory TransformerEncoderImpl::forward(const torch::Tensor& ids,
                                              ProfiledStream* profile) {
  TransformerEncoderState state = {
      .states = embedding_->forward(
          ids, is_training() ? config_.hidden_dropout_prob : 0.0)};
  const torch::Tensor mask = TokensIn(ids);
  const int64_t length = ids.size(1);
  TORCH_CHECK(length <= config_.max_source_positions,
              "sources should have at most ", config_.max_source_positions,
              " tokens, but one has ", length);
  const SoftmaxPattern pattern = WithoutPadding(
      AllKeysPattern({.queries = length, .keys = length, .batch = ids.size(0)}),
      mask);
  for (const auto& layer : layers_) {
    ThrowIfStopped();
    ThrowIfStoppedInBackward(state.states);
    state = layer->forward(state, pattern, residual_, profile);
  }
  return {.states = final_norm_.is_empty()
                        ? state.states
                        : ApplyLayerNorm(state.states, final_norm_),
          .mask = mask};
}

std::vector<torch::Tensor> TransformerEncoderImpl::Omegas() const {
  std::vector<torch::Tensor> all;
  for (const auto& layer : layers_) {
    const std::vector<torch::Tensor> of_layer = layer->Omegas();
    all.insert(all.end(), of_layer.begin(), of_layer.end());
  }
  return all;
}

void TransformerEncoderImpl::set_attention_implementation(
    AttentionImplementation implementation) {
  for (const auto& layer : layers_) {
    layer->set_attention_implementation(implementation);
  }
}

void TransformerEncoderImpl::set_linear_precision(LinearPrecision precision) {
  for (const auto& layer : layers_) {
    layer->set_linear_precision(precision);
  }
}

}  // namespace etc
