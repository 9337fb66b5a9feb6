#ifndef ETC_ETC_ENCODER_DECODER_MODEL_H_
#define ETC_ETC_ENCODER_DECODER_MODEL_H_

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <memory>

#include "attention/residual_scores.h"
#include "attention/sparse_attention.h"
#include "base/linear.h"
#include "etc/encoder_decoder/config.h"
#include "etc/encoder_decoder/decoder.h"
#include "etc/encoder_decoder/encoder.h"
#include "etc/encoder_decoder/token_embedding.h"
#include "etc/nn/smoothed_loss.h"

namespace etc {

// The encoder-decoder (doc/translation.md 1) with residual attention scores on
// three paths: encoder self attention, decoder self attention and cross
// attention, each summed from layer to layer of its own stack
// (doc/translation.md 3). B sentences, S source and T target tokens, V
// vocabulary, d hidden size.
//
// Modules `encoder`, `decoder`, and `embedding`, that of source tokens, which
// the decoder has too where all embeddings are shared.
//
// Throws c10::Error on a configuration that CheckEncoderDecoderConfig refuses,
// and without vocab_size.
class EncoderDecoderImpl : public torch::nn::Module {
 public:
  explicit EncoderDecoderImpl(const EncoderDecoderConfig& config);

  // Logits [B, T, V] of the tokens that follow those of `decoder_ids`.
  //
  //   source_ids   [B, S], int64 or int32: tokens and kEndId, with kPaddingId
  //                as padding on any side
  //   decoder_ids  [B, T]: kEndId and tokens, padding on the right
  //
  // Throws c10::Error for other shapes and dtypes, sequences longer than the
  // configuration says, ids outside of the vocabulary, and sources of padding
  // alone.
  torch::Tensor forward(const torch::Tensor& source_ids,
                        const torch::Tensor& decoder_ids);

  // The loss of `targets` [B, T], the tokens that should follow, without
  // [B, T, V] logits (etc/nn/smoothed_loss.h).
  SmoothedLoss Loss(const torch::Tensor& source_ids,
                    const torch::Tensor& decoder_ids,
                    const torch::Tensor& targets, double smoothing);

  TransformerEncoder& encoder() { return encoder_; }
  TransformerDecoder& decoder() { return decoder_; }
  const EncoderDecoderConfig& config() const { return config_; }

  // Storage of residual scores on all paths; kReverse unless set.
  void set_score_storage(ScoreStorage storage);
  // Implementation of all layers; kAuto unless set.
  void set_attention_implementation(AttentionImplementation implementation);
  // Precision of all linear layers and of the products of attention
  // (MultiHeadAttention); kFloat32 unless set. Parameters stay float32. Setting
  // it again forgets rounded copies of weights (LinearProducts).
  void set_linear_precision(LinearPrecision precision);

  // The same module, in the same mode, with parameters of its own, on `device`
  // if that is given. Draws no random numbers; gradients are not copied.
  std::shared_ptr<torch::nn::Module> clone(
      const c10::optional<torch::Device>& device = c10::nullopt) const override;

 private:
  void clone_(torch::nn::Module& other,
              const c10::optional<torch::Device>& device) override;

  EncoderDecoderConfig config_;
  ScoreStorage storage_ = ScoreStorage::kReverse;
  AttentionImplementation implementation_ = AttentionImplementation::kAuto;
  LinearPrecision precision_ = LinearPrecision::kFloat32;
  TokenEmbedding embedding_ = nullptr;
  TransformerEncoder encoder_ = nullptr;
  TransformerDecoder decoder_ = nullptr;
};
TORCH_MODULE(EncoderDecoder);

}  // namespace etc

#endif  // ETC_ETC_ENCODER_DECODER_MODEL_H_
