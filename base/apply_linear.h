#ifndef ETC_BASE_APPLY_LINEAR_H_
#define ETC_BASE_APPLY_LINEAR_H_

#include <torch/nn/modules/linear.h>
#include <torch/types.h>

namespace etc {

// input weight^T + bias, [..., outputs], for layers around the encoder: their
// results, too, are to be the same bits at any number of threads, which those
// of torch::linear are not. Of float32 on the CPU by MatrixProduct (linear.h)
// and differentiable once (c10::Error), otherwise by LibTorch.
//
//   input:   [..., n]
//   weight:  [outputs, n]
//   bias:    [outputs], or undefined
torch::Tensor ApplyLinear(const torch::Tensor& input,
                          const torch::Tensor& weight,
                          const torch::Tensor& bias = {});

inline torch::Tensor ApplyLinear(const torch::Tensor& input,
                                 const torch::nn::Linear& layer) {
  return ApplyLinear(input, layer->weight, layer->bias);
}

}  // namespace etc

#endif  // ETC_BASE_APPLY_LINEAR_H_
