#ifndef ETC_ATTENTION_BACKENDS_CPU_CPU_BACKEND_H_
#define ETC_ATTENTION_BACKENDS_CPU_CPU_BACKEND_H_

#include <string>

#include "attention/backends/backend.h"

namespace etc {

// Fused SIMD kernels (kernels/attention_tile.h) on all threads: float32 on the
// CPU, or bfloat16, which Prepare converts (with rounded products then);
// patterns as runs. Results are the same bits at any number of threads.
//
// Prepare leaves float32 tensors with adjacent elements in their rows; previous
// scores are contiguous.
class CpuBackend final : public FusedBackend {
 public:
  const char* name() const override { return "cpu"; }
  std::string UnsupportedReason(const AttentionProblem& problem) const override;
  void Prepare(AttentionProblem* problem) const override;
  ScorePair NewScores(const AttentionProblem& problem) const override;
  AttentionForward Forward(const AttentionProblem& problem) const override;
  void RecomputeScores(const AttentionProblem& problem,
                       bool subtract) const override;
  AttentionGradients Backward(const AttentionProblem& problem,
                              const AttentionForward& forward,
                              const torch::Tensor& context_gradient,
                              const ScoreGradients& scores) const override;
};

}  // namespace etc

#endif  // ETC_ATTENTION_BACKENDS_CPU_CPU_BACKEND_H_
