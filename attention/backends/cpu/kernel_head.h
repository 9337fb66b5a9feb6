#ifndef ETC_ATTENTION_BACKENDS_CPU_KERNEL_HEAD_H_
#define ETC_ATTENTION_BACKENDS_CPU_KERNEL_HEAD_H_

#include <cstdint>

#include "attention/backends/cpu/kernel_passes.h"
#include "attention/backends/cpu/kernels/attention_tile.h"

namespace etc {

// What the forward and backward passes over the kernels share.

// Of a problem: B, N, queries and the keys of own and other block, all but the
// radius.
struct KernelSizes {
  explicit KernelSizes(const KernelProblem& problem);

  int64_t batch, heads, queries, others, head_dim, value_dim;
  int64_t own_columns;  // of own scores: 2r + 1 or queries
};

// The kernel's view of one batch entry and head.
kernels::AttentionHead HeadOf(const KernelProblem& problem, int64_t batch,
                              int64_t head);

// Row 0 of batch entry and head of [B, N, rows, columns]; null if undefined or
// empty.
float* HeadRows(const torch::Tensor& tensor, int64_t batch, int64_t head);

// Queries that are worked on together, in each of `heads` heads of all batch
// entries: depends on nothing but these numbers.
int64_t TileLength(int64_t queries, int64_t heads);

}  // namespace etc

#endif  // ETC_ATTENTION_BACKENDS_CPU_KERNEL_HEAD_H_
