#include "etc/encoder_decoder/layers.h"

#include <c10/util/Exception.h>
#include <torch/utils.h>

#include <cmath>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include "base/initializers.h"
#include "etc/config.h"

namespace etc {
namespace {

enum class Stack { kEncoder, kDecoder };

double XavierBound(int64_t inputs, int64_t outputs) {
  return std::sqrt(6.0 / static_cast<double>(inputs + outputs));
}

// Draws the weights of one layer's module and sets its biases to 0: of
// attention with query, key and value as one matrix, of a feed-forward block
// with each of its two alone.
void DrawWeights(torch::nn::Module* module, int64_t hidden_size) {
  const torch::NoGradGuard no_grad;
  for (const auto& parameter : module->named_parameters()) {
    const std::string& name = parameter.key();
    torch::Tensor value = parameter.value();
    if (name == "query.weight" || name == "key.weight" ||
        name == "value.weight") {
      Uniform_(value, XavierBound(hidden_size, 3 * hidden_size));
    } else if (name == "output.weight" || name == "intermediate.weight") {
      Uniform_(value, XavierBound(value.size(1), value.size(0)));
    } else if (name == "query.bias" || name == "key.bias" ||
               name == "value.bias" || name == "output.bias" ||
               name == "intermediate.bias") {
      value.zero_();
    }
  }
}

const std::string& SublayerOfStack(const EncoderDecoderConfig& config,
                                   Stack stack) {
  return stack == Stack::kEncoder ? config.encoder_sublayer
                                  : config.decoder_sublayer;
}

// Attention of one path in layer `layer` = 0, 1, ... of its stack. The first
// has no gate, since nothing is carried to it.
MultiHeadAttentionOptions PathOptions(const EncoderDecoderConfig& config,
                                      const std::string& residual_attention,
                                      int64_t layer) {
  return {.hidden_size = config.hidden_size,
          .num_heads = config.num_attention_heads,
          .head_size = config.head_size(),
          .dropout = config.attention_probs_dropout_prob,
          .residual_gate_init = residual_attention == "gate" && layer > 0
                                    ? std::optional(config.residual_gate_init)
                                    : std::nullopt};
}

MultiHeadAttention MakeAttention(const MultiHeadAttentionOptions& options) {
  MultiHeadAttention attention = nullptr;
  {
    const WithoutInitialValues drawn_below;
    attention = MultiHeadAttention(options);
  }
  DrawWeights(attention.get(), options.hidden_size);
  return attention;
}

FeedForwardBlock MakeFeedForward(const EncoderDecoderConfig& config,
                                 Stack stack) {
  FeedForwardBlock block = nullptr;
  {
    const WithoutInitialValues drawn_below;
    block = FeedForwardBlock(
        config.hidden_size, config.intermediate_size,
        EtcEncoderLayerOptions{
            .activation = ActivationFromName(config.hidden_act),
            .sublayer = SublayerNamed(SublayerOfStack(config, stack)),
            .hidden_dropout = config.hidden_dropout_prob,
            .activation_dropout = config.activation_dropout_prob,
            .layer_norm_epsilon = config.layer_norm_epsilon});
  }
  DrawWeights(block.get(), config.hidden_size);
  return block;
}

ResidualConnection MakeConnection(const EncoderDecoderConfig& config,
                                  Stack stack, const char* prefix,
                                  torch::nn::Module* owner) {
  return ResidualConnection(
      {.sublayer = SublayerNamed(SublayerOfStack(config, stack)),
       .hidden_size = config.hidden_size,
       .layer_norm_epsilon = config.layer_norm_epsilon,
       .prefix = prefix},
      owner);
}

// The parameters that are called so, of those that there are.
std::vector<torch::Tensor> ParametersNamed(
    const torch::nn::Module& module, std::initializer_list<const char*> names) {
  const auto parameters = module.named_parameters();
  std::vector<torch::Tensor> found;
  for (const char* const name : names) {
    if (const torch::Tensor* const parameter = parameters.find(name)) {
      found.push_back(*parameter);
    }
  }
  return found;
}

// `more` behind `kept` along the keys.
KeyValueHeads Appended(const KeyValueHeads& kept, const KeyValueHeads& more) {
  if (!kept.key.defined()) {
    return more;
  }
  return {.key = torch::cat({kept.key, more.key}, 2),
          .value = torch::cat({kept.value, more.value}, 2)};
}

}  // namespace

EncoderDecoderConfig CheckedForModules(const EncoderDecoderConfig& config) {
  const absl::Status status =
      CheckEncoderDecoderConfig(config, "EncoderDecoderConfig");
  TORCH_CHECK(status.ok(), std::string(status.message()));
  TORCH_CHECK(config.vocab_size > 0,
              "EncoderDecoderConfig: vocab_size should be given");
  return config;
}

ResidualOptions ResidualOf(const EncoderDecoderConfig& config,
                           const std::string& residual_attention) {
  return {.mode = ResidualAttentionFromName(residual_attention),
          .decay = config.residual_decay,
          .storage = ScoreStorage::kReverse};
}

SoftmaxPattern WithoutPadding(const SoftmaxPattern& pattern,
                              const torch::Tensor& mask) {
  return !mask.defined() || mask.all().item<bool>() ? pattern
                                                    : OnlyKeys(pattern, mask);
}

TransformerEncoderLayerImpl::TransformerEncoderLayerImpl(
    const EncoderDecoderConfig& config, int64_t layer)
    : dropout_(config.hidden_dropout_prob) {
  self_attention_ = register_module(
      "self_attention", MakeAttention(PathOptions(
                            config, config.encoder_residual_attention, layer)));
  self_connection_ =
      MakeConnection(config, Stack::kEncoder, "self_attention_", this);
  feed_forward_ =
      register_module("feed_forward", MakeFeedForward(config, Stack::kEncoder));
}

TransformerEncoderState TransformerEncoderLayerImpl::forward(
    const TransformerEncoderState& below, const SoftmaxPattern& pattern,
    const ResidualOptions& residual, ProfiledStream* profile) {
  const torch::Tensor input = self_connection_.Begin(below.states);
  const MultiHeadAttentionOutput self = self_attention_->forward(
      input, input, input, pattern,
      {.residual = residual, .previous = below.scores});
  const torch::Tensor states =
      self_connection_.End({.change = self.output,
                            .residual = below.states,
                            .dropout = is_training() ? dropout_ : 0.0},
                           profile);
  return {.states = feed_forward_->forward(states, profile),
          .scores = self.scores};
}

std::vector<torch::Tensor> TransformerEncoderLayerImpl::Omegas() const {
  return ParametersNamed(*this, {"self_attention_omega", "feed_forward.omega"});
}

void TransformerEncoderLayerImpl::set_attention_implementation(
    AttentionImplementation implementation) {
  self_attention_->set_implementation(implementation);
}

void TransformerEncoderLayerImpl::set_linear_precision(
    LinearPrecision precision) {
  self_attention_->set_linear_precision(precision);
  feed_forward_->set_linear_precision(precision);
}

TransformerDecoderLayerImpl::TransformerDecoderLayerImpl(
    const EncoderDecoderConfig& config, int64_t layer)
    : dropout_(config.hidden_dropout_prob) {
  self_attention_ = register_module(
      "self_attention", MakeAttention(PathOptions(
                            config, config.decoder_residual_attention, layer)));
  self_connection_ =
      MakeConnection(config, Stack::kDecoder, "self_attention_", this);
  cross_attention_ = register_module(
      "cross_attention", MakeAttention(PathOptions(
                             config, config.cross_residual_attention, layer)));
  cross_connection_ =
      MakeConnection(config, Stack::kDecoder, "cross_attention_", this);
  feed_forward_ =
      register_module("feed_forward", MakeFeedForward(config, Stack::kDecoder));
}

KeyValueHeads TransformerDecoderLayerImpl::ProjectMemory(
    const torch::Tensor& memory) {
  return cross_attention_->Project(memory, memory);
}

MultiHeadAttentionOutput TransformerDecoderLayerImpl::SelfAttention(
    const TransformerDecoderState& below, const DecoderPass& pass,
    DecoderLayerCache* cache) {
  const torch::Tensor input = self_connection_.Begin(below.states);
  const CarriedKeyScores carried = {.residual = pass.self_residual,
                                    .previous = below.self_scores};
  if (cache == nullptr) {
    return self_attention_->forward(input, input, input, pass.self_pattern,
                                    carried);
  }
  cache->self = Appended(cache->self, self_attention_->Project(input, input));
  return self_attention_->Attend(input, cache->self, pass.self_pattern,
                                 carried);
}

MultiHeadAttentionOutput TransformerDecoderLayerImpl::CrossAttention(
    const torch::Tensor& states, const ResidualKeyScores& previous,
    const DecoderPass& pass, const DecoderLayerCache* cache) {
  const torch::Tensor input = cross_connection_.Begin(states);
  const CarriedKeyScores carried = {.residual = pass.cross_residual,
                                    .previous = previous};
  if (cache == nullptr) {
    return cross_attention_->forward(input, pass.memory, pass.memory,
                                     pass.cross_pattern, carried);
  }
  const int64_t batch = cache->memory.key.size(0);
  MultiHeadAttentionOutput attended =
      cross_attention_->Attend(input.view({batch, -1, input.size(2)}),
                               cache->memory, pass.cross_pattern, carried);
  attended.output = attended.output.view(input.sizes());
  return attended;
}

TransformerDecoderState TransformerDecoderLayerImpl::forward(
    const TransformerDecoderState& below, const DecoderPass& pass,
    DecoderLayerCache* cache) {
  const double dropout = is_training() ? dropout_ : 0.0;
  const MultiHeadAttentionOutput self = SelfAttention(below, pass, cache);
  const torch::Tensor behind_self = self_connection_.End(
      {.change = self.output, .residual = below.states, .dropout = dropout},
      pass.profile);
  const MultiHeadAttentionOutput cross =
      CrossAttention(behind_self, below.cross_scores, pass, cache);
  const torch::Tensor behind_cross = cross_connection_.End(
      {.change = cross.output, .residual = behind_self, .dropout = dropout},
      pass.profile);
  return {.states = feed_forward_->forward(behind_cross, pass.profile),
          .self_scores = self.scores,
          .cross_scores = cross.scores};
}

std::vector<torch::Tensor> TransformerDecoderLayerImpl::Omegas() const {
  return ParametersNamed(
      *this,
      {"self_attention_omega", "cross_attention_omega", "feed_forward.omega"});
}

void TransformerDecoderLayerImpl::set_attention_implementation(
    AttentionImplementation implementation) {
  self_attention_->set_implementation(implementation);
  cross_attention_->set_implementation(implementation);
}

void TransformerDecoderLayerImpl::set_linear_precision(
    LinearPrecision precision) {
  self_attention_->set_linear_precision(precision);
  cross_attention_->set_linear_precision(precision);
  feed_forward_->set_linear_precision(precision);
}

}  // namespace etc
