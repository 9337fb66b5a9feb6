#ifndef ETC_TASKS_PRETRAIN_HEADS_MLM_HEAD_H_
#define ETC_TASKS_PRETRAIN_HEADS_MLM_HEAD_H_

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include "base/linear.h"
#include "etc/config.h"
#include "etc/nn/activation.h"
#include "tasks/pretrain/heads/mlm_loss.h"

namespace etc {

// The head of masked-language modelling (Devlin et al. 2019, BERT;
// doc/pretraining.md 5), of the encoder's outputs x at masked positions, [M,
// H]:
//
//   h      = LayerNorm(activation(x W + b))      [M, E]
//   logits = h table^T + output_bias             [M, V]
//
// where the table [V, E] is the encoder's and E its width: with ETC's projected
// embeddings W leads from the hidden size back to it. The activation and the
// epsilon of the LayerNorm are the model's (official code: gelu, 1e-12).
//
// Parameters: `transform.weight` [E, H] and `transform.bias` [E], truncated
// normal(initializer_range) and zeros; `norm.weight` and `norm.bias` [E], ones
// and zeros; `output_bias` [V], zeros.
class MlmHeadImpl : public torch::nn::Module {
 public:
  // `config` has passed CheckEtcConfig.
  explicit MlmHeadImpl(const EtcConfig& config);

  // h above, of x: [M, H] -> [M, E].
  torch::Tensor Hidden(const torch::Tensor& x);

  // Losses of the M predictions, without [M, V] logits (mlm_loss.h).
  //
  //   x:       [M, H]
  //   labels:  [M] int64, the tokens that were masked
  //   table:   [V, E], EtcModel's token_embedding_table()
  MlmLosses forward(const torch::Tensor& x, const torch::Tensor& labels,
                    const torch::Tensor& table);

  // Precision of all products, as EtcModel's.
  void set_linear_precision(LinearPrecision precision);

 private:
  const Activation activation_;
  LinearProducts products_;
  torch::nn::Linear transform_ = nullptr;
  torch::nn::LayerNorm norm_ = nullptr;
  torch::Tensor output_bias_;
};
TORCH_MODULE(MlmHead);

// The two layers of next-sentence prediction (Devlin et al. 2019, BERT;
// doc/pretraining.md 5), of the encoder's output s0 of the first token, [B, H]:
//
//   pooled = tanh(s0 Wp + bp)      [B, H]
//   logits = pooled Wn^T + bn      [B, 2]
struct NspLayers {
  torch::nn::Linear pooler = nullptr;      // H -> H
  torch::nn::Linear classifier = nullptr;  // H -> 2
};

// New layers: truncated normal(initializer_range) and zeros.
NspLayers MakeNspLayers(int64_t hidden_size, double initializer_range);

struct NspLosses {
  torch::Tensor losses;   // [B], cross-entropies
  torch::Tensor correct;  // [B] bool; of two equal logits the first counts
};

//   first:   [B, H]
//   labels:  [B] int64, 0: the second sentence is the next one, 1: a random one
//
// Differentiable. Throws c10::Error for other shapes.
NspLosses ComputeNspLosses(const torch::Tensor& first,
                           const torch::Tensor& labels,
                           const NspLayers& layers);

}  // namespace etc

#endif  // ETC_TASKS_PRETRAIN_HEADS_MLM_HEAD_H_
