#ifndef ETC_ETC_ENCODER_DECODER_ENCODER_H_
#define ETC_ETC_ENCODER_DECODER_ENCODER_H_

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
#include "etc/encoder_decoder/token_embedding.h"
#include "etc/model.h"

namespace etc {

class TransformerEncoderLayerImpl;
struct ProfiledStream;

// An encoder's output, as cross attention reads it.
struct DecoderMemory {
  torch::Tensor states = {};  // [B, S, d]
  // [B, S] bool, true for tokens, which cross attention sees; undefined: all.
  torch::Tensor mask = {};
};

// The output of an ETC encoder over long sources: the global tokens, then the
// long ones. Masks [B, G] and [B, L] are true for tokens; undefined: all.
// Throws c10::Error if the output is of chosen rows, or masks do not fit.
DecoderMemory MemoryOfEtc(const EtcOutput& output,
                          const torch::Tensor& global_mask,
                          const torch::Tensor& long_mask);

// The dense encoder (doc/translation.md 1): embeddings, layers, and with
// sublayer "pre_norm" a LayerNorm. Modules `layers` and `final_norm`; the
// embedding is registered by its owner.
class TransformerEncoderImpl : public torch::nn::Module {
 public:
  // Throws c10::Error on a configuration that CheckEncoderDecoderConfig
  // refuses, and without vocab_size.
  TransformerEncoderImpl(const EncoderDecoderConfig& config,
                         TokenEmbedding embedding);

  // ids [B, S] int64 or int32 with kPaddingId for padding on any side; padding
  // is not seen, and computed all the same. With a `profile` omegas are set
  // (etc/encoder_decoder/admin_omegas.h). Throws c10::Error as TokenEmbedding
  // does, and for a row that is padding alone.
  DecoderMemory forward(const torch::Tensor& ids,
                        ProfiledStream* profile = nullptr);

  // Omegas of sublayer "admin", bottom to top; else none.
  std::vector<torch::Tensor> Omegas() const;
  void set_score_storage(ScoreStorage storage) { residual_.storage = storage; }
  void set_attention_implementation(AttentionImplementation implementation);
  void set_linear_precision(LinearPrecision precision);

 private:
  const EncoderDecoderConfig config_;
  ResidualOptions residual_;
  TokenEmbedding embedding_;
  std::vector<std::shared_ptr<TransformerEncoderLayerImpl>> layers_;
  torch::nn::LayerNorm final_norm_ = nullptr;
};
TORCH_MODULE(TransformerEncoder);

}  // namespace etc

#endif  // ETC_ETC_ENCODER_DECODER_ENCODER_H_
