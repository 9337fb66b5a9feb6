#ifndef ETC_TASKS_PRETRAIN_NSP_HEAD_H_
#define ETC_TASKS_PRETRAIN_NSP_HEAD_H_

#include <torch/nn/modules/linear.h>
#include <torch/types.h>

namespace etc {

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

// tanh(first W + b), [B, H].
torch::Tensor Pool(const torch::Tensor& first, const torch::nn::Linear& pooler);

struct NspLosses {
  torch::Tensor logits;   // [B, 2]
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

#endif  // ETC_TASKS_PRETRAIN_NSP_HEAD_H_
