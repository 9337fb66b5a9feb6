#ifndef ETC_ATTENTION_BACKENDS_CPU_HEAD_VIEW_H_
#define ETC_ATTENTION_BACKENDS_CPU_HEAD_VIEW_H_

#include <torch/types.h>

#include <cstdint>

#include "attention/attention_problem.h"
#include "attention/backends/cpu/kernels/attention_head.h"

namespace etc {

// Tensors of a problem as the kernels see them: plain pointers into one batch
// entry and head.

kernels::AttentionHead HeadOf(const AttentionProblem& problem, int64_t batch,
                              int64_t head);

// Row 0 of [B, N, rows, columns]; null if undefined or empty.
float* HeadRows(const torch::Tensor& tensor, int64_t batch, int64_t head);

// Contiguous scores; null if undefined or empty.
kernels::ScoreRows<const float> ScoreRowsOf(const torch::Tensor& scores,
                                            int64_t batch, int64_t head);
kernels::ScoreRows<float> ScoreRowsToWrite(const torch::Tensor& scores,
                                           int64_t batch, int64_t head);

// Statistics from which the backward pass recomputes the probabilities,
// contiguous [B, N, T]: see kernels::ForwardResults.
struct SoftmaxSums {
  torch::Tensor row_max, row_inverse_sum;
};
// Element 0 of contiguous [B, N, T].
float* VectorOfHead(const torch::Tensor& tensor, int64_t batch, int64_t head);

}  // namespace etc

#endif  // ETC_ATTENTION_BACKENDS_CPU_HEAD_VIEW_H_
