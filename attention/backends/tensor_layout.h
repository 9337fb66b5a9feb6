#ifndef ETC_ATTENTION_BACKENDS_TENSOR_LAYOUT_H_
#define ETC_ATTENTION_BACKENDS_TENSOR_LAYOUT_H_

#include <torch/types.h>

#include "attention/attention_operands.h"
#include "attention/attention_problem.h"
#include "base/large_pages.h"

namespace etc {

// Tensors as kernels read them, by operations that autograd records; and those
// that backends write, uninitialised.

// `tensor`, or a copy whose rows have adjacent elements.
inline torch::Tensor WithAdjacentElements(const torch::Tensor& tensor) {
  return tensor.size(-1) == 1 || tensor.stride(-1) == 1 ? tensor
                                                        : tensor.contiguous();
}

inline torch::Tensor ContiguousOrUndefined(const torch::Tensor& tensor) {
  return tensor.defined() ? tensor.contiguous() : tensor;
}

// The scores of a problem: contiguous [B, N, T, columns] each.
inline ScorePair EmptyScores(const AttentionSizes& sizes,
                             const torch::TensorOptions& options) {
  const auto scores = [&](int64_t columns) {
    return WithLargePages(torch::empty(
        {sizes.batch, sizes.heads, sizes.queries, columns}, options));
  };
  return {.own = scores(sizes.own_columns), .other = scores(sizes.other_keys)};
}

// [B, N, T, d], of which the heads of a token lie side by side, as projections
// make and want them.
inline torch::Tensor EmptyHeadRows(at::IntArrayRef sizes,
                                   const torch::TensorOptions& options) {
  const int64_t heads = sizes[1];
  const int64_t rows = sizes[2];
  const int64_t columns = sizes[3];
  return torch::empty_strided(
      sizes, {rows * heads * columns, columns, heads * columns, 1}, options);
}

}  // namespace etc

#endif  // ETC_ATTENTION_BACKENDS_TENSOR_LAYOUT_H_
