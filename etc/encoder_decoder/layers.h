#ifndef ETC_ETC_ENCODER_DECODER_LAYERS_H_
#define ETC_ETC_ENCODER_DECODER_LAYERS_H_

#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "attention/dot_product_attention.h"
#include "attention/multi_head_attention.h"
#include "attention/residual_scores.h"
#include "attention/softmax_pattern.h"
#include "base/linear.h"
#include "etc/encoder_decoder/config.h"
#include "etc/encoder_decoder/decoder_cache.h"
#include "etc/encoder_layer.h"
#include "etc/nn/residual_connection.h"

namespace etc {

// `config`, of which modules can be built. Throws c10::Error for one that
// CheckEncoderDecoderConfig refuses, and without vocab_size.
EncoderDecoderConfig CheckedForModules(const EncoderDecoderConfig& config);

// The residual scores of one path of `config`, of mode `residual_attention`:
// stored in reverse until another storage is chosen.
ResidualOptions ResidualOf(const EncoderDecoderConfig& config,
                           const std::string& residual_attention);

// `pattern` without keys that `mask` [B, S] says are none; with an undefined
// mask, or one of tokens alone, the pattern itself.
SoftmaxPattern WithoutPadding(const SoftmaxPattern& pattern,
                              const torch::Tensor& mask);

// The stream of an encoder, and the scores carried past it.
struct TransformerEncoderState {
  torch::Tensor states;  // [B, S, d]
  ResidualKeyScores scores;
};

// One layer of the encoder (doc/translation.md 1.5): self attention and
// feed-forward block, each in a ResidualConnection. All weights are
// Xavier-uniform, those of query, key and value as one matrix [3 d, d]; biases
// are 0.
class TransformerEncoderLayerImpl : public torch::nn::Module {
 public:
  TransformerEncoderLayerImpl(const EncoderDecoderConfig& config,
                              int64_t layer);

  // `pattern` is over S queries and S keys. With a `profile` omegas are set
  // (ResidualConnection).
  TransformerEncoderState forward(const TransformerEncoderState& below,
                                  const SoftmaxPattern& pattern,
                                  const ResidualOptions& residual,
                                  ProfiledStream* profile = nullptr);

  // Omegas of sublayer "admin", in the order of the blocks; else none.
  std::vector<torch::Tensor> Omegas() const;
  void set_attention_implementation(AttentionImplementation implementation);
  void set_linear_precision(LinearPrecision precision);

 private:
  double dropout_;
  MultiHeadAttention self_attention_ = nullptr;
  ResidualConnection self_connection_;
  FeedForwardBlock feed_forward_ = nullptr;
};

// The stream of a decoder, and the scores carried past it on both paths.
struct TransformerDecoderState {
  torch::Tensor states;  // [B, T, d]
  ResidualKeyScores self_scores, cross_scores;
};

// Inputs that all decoder layers of a pass share. B sentences of S source
// tokens.
struct DecoderPass {
  torch::Tensor memory;          // [B, S, d]; not used with caches
  SoftmaxPattern self_pattern;   // over T queries and T keys
  SoftmaxPattern cross_pattern;  // over T queries and S keys
  ResidualOptions self_residual, cross_residual;
  ProfiledStream* profile = nullptr;
};

// One layer of the decoder (doc/translation.md 1.5): self attention, cross
// attention over the encoder's output, feed-forward block. Weights as in
// TransformerEncoderLayerImpl.
class TransformerDecoderLayerImpl : public torch::nn::Module {
 public:
  TransformerDecoderLayerImpl(const EncoderDecoderConfig& config,
                              int64_t layer);

  // All T tokens at once; with a profile omegas are set.
  //
  // With a cache: one token for each of `rows` hypotheses, rows / B for each
  // sentence in order of sentences. `below.states` is [rows, 1, d], which
  // `self_pattern` sees with the keys of the cache and of itself, and which are
  // rows / B queries of each sentence for `cross_pattern`; the token's keys and
  // values are put at the end of the cache.
  TransformerDecoderState forward(const TransformerDecoderState& below,
                                  const DecoderPass& pass,
                                  DecoderLayerCache* cache = nullptr);

  // Keys and values of cross attention to memory [B, S, d].
  KeyValueHeads ProjectMemory(const torch::Tensor& memory);

  // Omegas of sublayer "admin", in the order of the blocks; else none.
  std::vector<torch::Tensor> Omegas() const;
  void set_attention_implementation(AttentionImplementation implementation);
  void set_linear_precision(LinearPrecision precision);

 private:
  MultiHeadAttentionOutput SelfAttention(const TransformerDecoderState& below,
                                         const DecoderPass& pass,
                                         DecoderLayerCache* cache);
  MultiHeadAttentionOutput CrossAttention(const torch::Tensor& states,
                                          const ResidualKeyScores& previous,
                                          const DecoderPass& pass,
                                          const DecoderLayerCache* cache);

  double dropout_;
  MultiHeadAttention self_attention_ = nullptr, cross_attention_ = nullptr;
  ResidualConnection self_connection_, cross_connection_;
  FeedForwardBlock feed_forward_ = nullptr;
};

}  // namespace etc

#endif  // ETC_ETC_ENCODER_DECODER_LAYERS_H_
