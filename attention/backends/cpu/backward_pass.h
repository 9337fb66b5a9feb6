#ifndef ETC_ATTENTION_BACKENDS_CPU_BACKWARD_PASS_H_
#define ETC_ATTENTION_BACKENDS_CPU_BACKWARD_PASS_H_

#include <torch/types.h>

#include "attention/backends/backend.h"
#include "attention/backends/cpu/head_view.h"

namespace etc {

struct BackwardPassInput {
  const AttentionProblem& problem;
  // Results of the forward pass.
  torch::Tensor context;
  SoftmaxSums sums;

  torch::Tensor context_gradient;  // rows of adjacent elements
  ScoreGradients scores;           // contiguous
};

// The gradients of operands and gates, on all threads (base/parallel_tasks.h).
AttentionGradients RunBackwardPass(const BackwardPassInput& input);

}  // namespace etc

#endif  // ETC_ATTENTION_BACKENDS_CPU_BACKWARD_PASS_H_
