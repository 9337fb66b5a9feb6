#ifndef ETC_ATTENTION_BACKENDS_CPU_KERNEL_PASSES_H_
#define ETC_ATTENTION_BACKENDS_CPU_KERNEL_PASSES_H_

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
  // Where scores are carried on: contiguous, may be the previous ones.
  // Undefined: nowhere.
  torch::Tensor own_carried, other_carried;

  std::shared_ptr<const std::vector<PatternRuns>> runs;  // [B]
  int64_t local_radius = 0;
  double divisor = 1.0;
  double dropout = 0.0;
  uint64_t dropout_seed = 0;
};

// `tensor`, or a copy whose rows have adjacent elements.
torch::Tensor WithAdjacentElements(const torch::Tensor& tensor);
torch::Tensor ContiguousOrUndefined(const torch::Tensor& tensor);

struct KernelForward {
  torch::Tensor context;
  // [B, N, queries]: see kernels::ForwardResults.
  torch::Tensor row_max, row_inverse_sum;
};

// Gradients; undefined where the input is.
struct KernelGradients {
  torch::Tensor query;
  torch::Tensor own_key, own_value;
  torch::Tensor other_key, other_value;
  RelativeTable relative;
};

// What the backward pass has to do with scores.
struct KernelScoreGradients {
  // Of the carried scores; undefined: zeros.
  torch::Tensor own_carried, other_carried;
  // Where those of the previous ones go: contiguous, may be those of the
  // carried ones. Undefined: nowhere.
  torch::Tensor own_previous, other_previous;
  // Whether the carried scores are to become the previous ones again.
  bool undo = false;
};

// New tensors for the scores of a problem, of unknown content.
struct ScorePair {
  torch::Tensor own, other;
};
ScorePair NewScores(const KernelProblem& problem);

// All work on all threads (parallel_tasks.h), and give the same bits at any
// number of them.
KernelForward RunKernelForward(const KernelProblem& problem);

// Scores alone: carried = previous + score, or previous - score.
void RunKernelScores(const KernelProblem& problem, bool subtract);

// `forward` is what the forward pass gave; `context_gradient` may be undefined:
// zeros. The carried scores are those that the forward pass left.
KernelGradients RunKernelBackward(const KernelProblem& problem,
                                  const KernelForward& forward,
                                  const torch::Tensor& context_gradient,
                                  const KernelScoreGradients& scores);

}  // namespace etc

#endif  // ETC_ATTENTION_BACKENDS_CPU_KERNEL_PASSES_H_
