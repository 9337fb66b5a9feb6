#ifndef ETC_ATTENTION_BACKENDS_TENSOR_LAYOUT_H_
#define ETC_ATTENTION_BACKENDS_TENSOR_LAYOUT_H_

#include <torch/types.h>

namespace etc {

// Tensors as kernels read them, by operations that autograd records.

// `tensor`, or a copy whose rows have adjacent elements.
inline torch::Tensor WithAdjacentElements(const torch::Tensor& tensor) {
  return tensor.size(-1) == 1 || tensor.stride(-1) == 1 ? tensor
                                                        : tensor.contiguous();
}

inline torch::Tensor ContiguousOrUndefined(const torch::Tensor& tensor) {
  return tensor.defined() ? tensor.contiguous() : tensor;
}

}  // namespace etc

#endif  // ETC_ATTENTION_BACKENDS_TENSOR_LAYOUT_H_
