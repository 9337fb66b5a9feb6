#ifndef ETC_ETC_ENCODER_DECODER_DECODER_H_
#define ETC_ETC_ENCODER_DECODER_DECODER_H_

#include <torch/nn/module.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "attention/residual_scores.h"
#include "attention/sparse_attention.h"
#include "base/linear.h"
#include "etc/encoder_decoder/config.h"
#include "etc/encoder_decoder/decoder_cache.h"
#include "etc/encoder_decoder/encoder.h"
#include "etc/encoder_decoder/token_embedding.h"
#include "etc/nn/smoothed_loss.h"

namespace etc {

class TransformerDecoderLayerImpl;
struct ProfiledStream;

// The decoder (doc/translation.md 1): embeddings of target tokens, layers, with
// sublayer "pre_norm" a LayerNorm, and logits without bias by a table that may
// be that of the embeddings. Over the output of any encoder of the same width.
//
// Modules `layers`, `final_norm`, and unless they are given or shared
// `embedding` and parameter `output` [vocab_size, d], normal(1 / sqrt(d)).
class TransformerDecoderImpl : public torch::nn::Module {
 public:
  // With `shared_embedding`, the encoder's, whose owner registers it; null: its
  // own. Throws c10::Error on a configuration that CheckEncoderDecoderConfig
  // refuses, and without vocab_size.
  explicit TransformerDecoderImpl(const EncoderDecoderConfig& config,
                                  TokenEmbedding shared_embedding = nullptr);

  // States [B, T, d] of T target tokens, each of which sees those up to itself
  // and the memory: `ids` [B, T] begins with kEndId, padding is on the right.
  // With a `profile` omegas are set (etc/encoder_decoder/admin_omegas.h).
  // Throws c10::Error for memory of other shapes and dtypes, and as
  // TokenEmbedding does.
  torch::Tensor forward(const DecoderMemory& memory, const torch::Tensor& ids,
                        ProfiledStream* profile = nullptr);

  // [..., d] -> [..., vocab_size].
  torch::Tensor Logits(const torch::Tensor& states) const;
  // The loss of states [..., d] with targets [...] (etc/nn/smoothed_loss.h),
  // kPaddingId being none.
  SmoothedLoss Loss(const torch::Tensor& states, const torch::Tensor& targets,
                    double smoothing) const;

  // Incremental decoding without gradient: states of the last tokens equal
  // those of `forward`, up to rounding. Keeps projected keys and values, and no
  // scores, since a row of carried scores serves its own query only. In
  // evaluation mode; c10::Error in training.
  DecoderCache Begin(const DecoderMemory& memory);
  // One token more for each row: ids [rows] -> states [rows, d].
  torch::Tensor Step(const torch::Tensor& ids, DecoderCache* cache);

  // The most tokens of a sequence.
  int64_t max_positions() const { return config_.max_target_positions; }
  int64_t vocab_size() const { return output_table().size(0); }
  // [vocab_size, d].
  const torch::Tensor& output_table() const;

  // Omegas of sublayer "admin", bottom to top; else none.
  std::vector<torch::Tensor> Omegas() const;
  void set_score_storage(ScoreStorage storage) {
    self_residual_.storage = storage;
    cross_residual_.storage = storage;
  }
  void set_attention_implementation(AttentionImplementation implementation);
  // Precision of the layers, the logits and the loss.
  void set_linear_precision(LinearPrecision precision);

  // The same module, in the same mode, with parameters of its own, on `device`
  // if that is given. Draws no random numbers; gradients are not copied. Throws
  // c10::Error with a shared embedding, whose owner is to be cloned.
  std::shared_ptr<torch::nn::Module> clone(
      const c10::optional<torch::Device>& device = c10::nullopt) const override;

 private:
  void clone_(torch::nn::Module& other,
              const c10::optional<torch::Device>& device) override;

  void CheckMemory(const DecoderMemory& memory) const;
  torch::Tensor FinalNorm(const torch::Tensor& states);

  EncoderDecoderConfig config_;
  ResidualOptions self_residual_, cross_residual_;
  bool shares_embedding_;
  AttentionImplementation implementation_ = AttentionImplementation::kAuto;
  TokenEmbedding embedding_ = nullptr;
  torch::Tensor output_;  // undefined: the table of the embedding
  LinearProducts products_;
  std::vector<std::shared_ptr<TransformerDecoderLayerImpl>> layers_;
  torch::nn::LayerNorm final_norm_ = nullptr;
};
TORCH_MODULE(TransformerDecoder);

}  // namespace etc

#endif  // ETC_ETC_ENCODER_DECODER_DECODER_H_
