#ifndef ETC_ETC_NN_RESIDUAL_NORM_H_
#define ETC_ETC_NN_RESIDUAL_NORM_H_

#include <torch/nn/modules/normalization.h>
#include <torch/types.h>

#include <cstdint>

namespace etc {

// The end of a residual block (doc/model.md 4.1): adds the block's output to
// the stream. H is the hidden size.
struct ResidualInput {
  torch::Tensor change;    // [..., H]
  torch::Tensor bias;      // [H], added to `change`; may be undefined
  torch::Tensor residual;  // [..., H]; undefined: zeros
  // Probability of dropping an element of change + bias, in [0, 1). 0 outside
  // of training.
  double dropout = 0.0;
  // Number of rows before these, where they are a part of a stream that is
  // computed in slices: so that the same elements are dropped if each slice
  // draws the same seed (ReplayDropoutSeeds). Only the fast path drops elements
  // of a later slice (c10::Error).
  int64_t first_row = 0;
  // [..., H], the factor of each element, instead of random draws; may be
  // undefined. For the reference only.
  torch::Tensor dropout_factors;
};

struct NormParameters {
  torch::Tensor weight;  // [H]
  torch::Tensor bias;    // [H]
  double epsilon = 1e-12;
};

// residual + dropout(change + bias), [..., H].
//
// Float32 on the CPU is computed in one pass, forward and backward, by
// etc/nn/kernels/residual_norm.h; anything else by ResidualSumReference. No
// input is saved for backward: dropout follows from one number drawn from
// LibTorch's CPU generator. Differentiable in all tensors, once: gradients of
// gradients are refused (c10::Error) on the fast path. Throws c10::Error if
// shapes disagree.
torch::Tensor ResidualSum(const ResidualInput& input);

// LayerNorm of the same over the last axis. The fast path keeps the sum, and
// two numbers for each row: 4 (H + 2) bytes for each token.
torch::Tensor ResidualNorm(const ResidualInput& input,
                           const NormParameters& norm);

// LayerNorm over the last axis (doc/model.md 0).
torch::nn::LayerNorm MakeLayerNorm(int64_t size, double epsilon);

// LayerNorm of `input`, [..., H], alone: ResidualNorm of a change without a
// residual. Where gradients are wanted it keeps the input itself.
torch::Tensor ApplyLayerNorm(const torch::Tensor& input,
                             const NormParameters& norm);
torch::Tensor ApplyLayerNorm(const torch::Tensor& input,
                             const torch::nn::LayerNorm& norm);

// The definitions, in LibTorch's operations; of any dtype, on any device, and
// differentiable twice.
torch::Tensor ResidualSumReference(const ResidualInput& input);
torch::Tensor ResidualNormReference(const ResidualInput& input,
                                    const NormParameters& norm);

}  // namespace etc

#endif  // ETC_ETC_NN_RESIDUAL_NORM_H_
