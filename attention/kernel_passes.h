#ifndef ETC_ATTENTION_KERNEL_PASSES_H_
#define ETC_ATTENTION_KERNEL_PASSES_H_

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "attention/pattern_runs.h"
#include "attention/sparse_attention.h"

namespace etc {

// One joint softmax for the kernels: float32 tensors on the CPU, checked, each
// with adjacent elements in its rows (KernelSparseAttention sees to that).
// Shapes are those of SparseAttentionInput.
struct KernelProblem {
  QuerySide side = QuerySide::kLong;
  torch::Tensor query;
  torch::Tensor own_key, own_value;
  torch::Tensor other_key, other_value;
  RelativeTable relative;  // contiguous; undefined without ids
  torch::Tensor own_previous, other_previous;  // contiguous, or undefined

  std::shared_ptr<const std::vector<PatternRuns>> runs;  // [B]
  int64_t local_radius = 0;
  // Whether scores are carried on.
  bool carry = false;
  double divisor = 1.0;
  double dropout = 0.0;
  uint64_t dropout_seed = 0;
};

struct KernelForward {
  torch::Tensor context;
  torch::Tensor own_scores, other_scores;  // undefined if nothing is carried
  // [B, N, queries]: see kernels::ForwardResults.
  torch::Tensor row_max, row_inverse_sum;
};

// Gradients; undefined where the input is.
struct KernelGradients {
  torch::Tensor query;
  torch::Tensor own_key, own_value;
  torch::Tensor other_key, other_value;
  RelativeTable relative;
  torch::Tensor own_previous, other_previous;
};

// Both work on all threads (parallel_tasks.h), and give the same bits at any
// number of them.
KernelForward RunKernelForward(const KernelProblem& problem);

// `forward` is what the forward pass gave; `gradient` has the gradients of
// context (undefined: zeros) and, if scores are carried, of own and other
// scores (undefined: zeros).
KernelGradients RunKernelBackward(const KernelProblem& problem,
                                  const KernelForward& forward,
                                  const SparseAttentionOutput& gradient);

}  // namespace etc

#endif  // ETC_ATTENTION_KERNEL_PASSES_H_
