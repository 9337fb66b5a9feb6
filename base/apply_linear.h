#ifndef ETC_BASE_APPLY_LINEAR_H_
#define ETC_BASE_APPLY_LINEAR_H_

#include <torch/nn/modules/linear.h>
#include <torch/types.h>

namespace etc {

// input weight^T + bias, [..., outputs], for layers around the encoder: their
// results, too, are the same bits at any number of threads, which torch::linear
// does not promise. On the CPU, float32 is computed by MatrixProduct (linear.h)
// and differentiable once (c10::Error); anything else by LibTorch.
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
