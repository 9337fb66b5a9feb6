#ifndef ETC_ETC_NN_COLUMN_SCALE_H_
#define ETC_ETC_NN_COLUMN_SCALE_H_

#include <torch/types.h>

namespace etc {

// residual + factors * input, column by column:
//
//   input:    [..., H]
//   factors:  [H]
//   residual: [..., H]; undefined: zeros
//
// Differentiable in all three. For float32 on the CPU gradients are the same at
// any number of threads, and those of gradients are refused (c10::Error); all
// else is computed by LibTorch's operations, differentiable twice. Throws
// c10::Error if shapes disagree.
torch::Tensor ScaleColumns(const torch::Tensor& input,
                           const torch::Tensor& factors,
                           const torch::Tensor& residual = {});

}  // namespace etc

#endif  // ETC_ETC_NN_COLUMN_SCALE_H_
