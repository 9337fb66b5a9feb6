#include "etc/encoder_decoder/decoder.h"

#include <c10/util/Exception.h>
#include <torch/nn/modules/container/modulelist.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/check_shape.h"
#include "base/check_tensor.h"
#include "base/clone_module.h"
#include "base/initializers.h"
#include "base/stop_guard.h"
#include "etc/encoder_decoder/admin_omegas.h"
#include "etc/encoder_decoder/layers.h"
#include "etc/nn/residual_norm.h"

namespace etc {

TransformerDecoderImpl::TransformerDecoderImpl(
    const EncoderDecoderConfig& config, TokenEmbedding shared_embedding)
    : config_(CheckedForModules(config)),
      self_residual_(ResidualOf(config_, config_.decoder_residual_attention)),
      cross_residual_(ResidualOf(config_, config_.cross_residual_attention)),
      shares_embedding_(!shared_embedding.is_empty()),
      embedding_(std::move(shared_embedding)) {
  if (!shares_embedding_) {
    embedding_ = register_module(
        "embedding", TokenEmbedding(config_.vocab_size, config_.hidden_size,
                                    config_.max_target_positions));
  }
  if (config_.share_embeddings == "none") {
    torch::Tensor output =
        torch::empty({config_.vocab_size, config_.hidden_size});
    Normal_(output, 1.0 / std::sqrt(static_cast<double>(config_.hidden_size)));
    output_ = register_parameter("output", output);
  }
  torch::nn::ModuleList list;
  for (int64_t i = 0; i < config_.num_decoder_layers; ++i) {
    layers_.push_back(
        std::make_shared<TransformerDecoderLayerImpl>(config_, i));
    list->push_back(layers_.back());
  }
  register_module("layers", list);
  if (config_.decoder_sublayer == "pre_norm") {
    final_norm_ = register_module(
        "final_norm",
        MakeLayerNorm(config_.hidden_size, config_.layer_norm_epsilon));
  }
  FillOmegas(Omegas());
}

std::shared_ptr<torch::nn::Module> TransformerDecoderImpl::clone(
    const c10::optional<torch::Device>& device) const {
  TORCH_CHECK(!shares_embedding_,
              "a decoder whose embedding is shared cannot be cloned alone, but "
              "with the owner of the embedding (EncoderDecoder)");
  return CloneModule(*this, device, [this] {
    auto copy = std::make_shared<TransformerDecoderImpl>(config_);
    copy->set_score_storage(self_residual_.storage);
    copy->set_attention_implementation(implementation_);
    copy->set_linear_precision(products_.precision());
    return copy;
  });
}

void TransformerDecoderImpl::clone_(
    torch::nn::Module& other, const c10::optional<torch::Device>& device) {
  BecomeCloneOf(other, device, this);
}

const torch::Tensor& TransformerDecoderImpl::output_table() const {
  return output_.defined() ? output_ : embedding_->weight();
}

void TransformerDecoderImpl::CheckMemory(const DecoderMemory& memory) const {
  const torch::Tensor& table = output_table();
  TORCH_CHECK(
      memory.states.defined() && memory.states.dim() == 3 &&
          memory.states.size(2) == table.size(1) &&
          memory.states.scalar_type() == table.scalar_type(),
      "memory should be [batch, length, ", table.size(1), "] ",
      table.scalar_type(), ", but is ",
      memory.states.defined() ? memory.states.sizes() : at::IntArrayRef());
  if (memory.mask.defined()) {
    const torch::Tensor& memory_mask = memory.mask;
    ETC_CHECK_SHAPE(memory_mask,
                    {memory.states.size(0), memory.states.size(1)});
  }
}

torch::Tensor TransformerDecoderImpl::FinalNorm(const torch::Tensor& states) {
  return final_norm_.is_empty() ? states : ApplyLayerNorm(states, final_norm_);
}

torch::Tensor TransformerDecoderImpl::forward(const DecoderMemory& memory,
                                              const torch::Tensor& ids,
                                              ProfiledStream* profile) {
  CheckMemory(memory);
  TransformerDecoderState state = {
      .states = embedding_->forward(
          ids, is_training() ? config_.hidden_dropout_prob : 0.0)};
  const int64_t batch = ids.size(0);
  const int64_t length = ids.size(1);
  TORCH_CHECK(length <= max_positions(), "targets should have at most ",
              max_positions(), " tokens, but one has ", length);
  TORCH_CHECK(batch == memory.states.size(0), "ids should be of ",
              memory.states.size(0), " sentences, as the memory, but are of ",
              batch);
  const DecoderPass pass = {
      .memory = memory.states,
      .self_pattern = WithoutPadding(
          CausalPattern({.queries = length, .keys = length, .batch = batch}),
          ids.ne(kPaddingId)),
      .cross_pattern =
          WithoutPadding(AllKeysPattern({.queries = length,
                                         .keys = memory.states.size(1),
                                         .batch = batch}),
                         memory.mask),
      .self_residual = self_residual_,
      .cross_residual = cross_residual_,
      .profile = profile};
  for (const auto& layer : layers_) {
    ThrowIfStopped();
    ThrowIfStoppedInBackward(state.states);
    state = layer->forward(state, pass);
  }
  return FinalNorm(state.states);
}

torch::Tensor TransformerDecoderImpl::Logits(
    const torch::Tensor& states) const {
  return LinearProducts::Apply(products_.Input(states),
                               products_.Weight(output_table()));
}

SmoothedLoss TransformerDecoderImpl::Loss(const torch::Tensor& states,
                                          const torch::Tensor& targets,
                                          double smoothing) const {
  return SmoothedCrossEntropy({.states = states,
                               .weight = output_table(),
                               .factor = products_.Weight(output_table()),
                               .targets = targets,
                               .ignored = kPaddingId,
                               .smoothing = smoothing});
}

DecoderCache TransformerDecoderImpl::Begin(const DecoderMemory& memory) {
  TORCH_CHECK(!is_training(),
              "incremental decoding should be in evaluation mode");
  CheckMemory(memory);
  const torch::NoGradGuard no_grad;
  DecoderCache cache = {.sentences = memory.states.size(0),
                        .rows = memory.states.size(0),
                        .memory_length = memory.states.size(1),
                        .memory_mask = memory.mask};
  for (const auto& layer : layers_) {
    cache.layers.push_back({.memory = layer->ProjectMemory(memory.states)});
  }
  return cache;
}

torch::Tensor TransformerDecoderImpl::Step(const torch::Tensor& ids,
                                           DecoderCache* cache) {
  TORCH_CHECK(!is_training(),
              "incremental decoding should be in evaluation mode");
  TORCH_CHECK(cache->layers.size() == layers_.size(),
              "the cache should be of this decoder, with ", layers_.size(),
              " layers, but has ", cache->layers.size());
  ETC_CHECK_SHAPE(ids, {cache->rows});
  TORCH_CHECK(cache->length < max_positions(), "targets should have at most ",
              max_positions(), " tokens, but have ", cache->length + 1);
  const torch::NoGradGuard no_grad;
  TransformerDecoderState state = {
      .states = embedding_->At(ids, cache->length)};  // [rows, 1, d]
  const DecoderPass pass = {
      .self_pattern = AllKeysPattern(
          {.queries = 1, .keys = cache->length + 1, .batch = cache->rows}),
      .cross_pattern = WithoutPadding(
          AllKeysPattern(
              {.queries = cache->rows / std::max<int64_t>(cache->sentences, 1),
               .keys = cache->memory_length,
               .batch = cache->sentences}),
          cache->memory_mask),
      .self_residual = self_residual_,
      .cross_residual = cross_residual_};
  for (size_t i = 0; i < layers_.size(); ++i) {
    ThrowIfStopped();
    state = layers_[i]->forward(state, pass, &cache->layers[i]);
  }
  ++cache->length;
  return FinalNorm(state.states).squeeze(1);
}

std::vector<torch::Tensor> TransformerDecoderImpl::Omegas() const {
  std::vector<torch::Tensor> all;
  for (const auto& layer : layers_) {
    const std::vector<torch::Tensor> of_layer = layer->Omegas();
    all.insert(all.end(), of_layer.begin(), of_layer.end());
  }
  return all;
}

void TransformerDecoderImpl::set_attention_implementation(
    AttentionImplementation implementation) {
  implementation_ = implementation;
  for (const auto& layer : layers_) {
    layer->set_attention_implementation(implementation);
  }
}

void TransformerDecoderImpl::set_linear_precision(LinearPrecision precision) {
  products_.set_precision(precision);
  for (const auto& layer : layers_) {
    layer->set_linear_precision(precision);
  }
}

}  // namespace etc
