#ifndef ETC_ATTENTION_BACKENDS_CUDA_CUDA_BACKEND_H_
#define ETC_ATTENTION_BACKENDS_CUDA_CUDA_BACKEND_H_

#include <torch/types.h>

#include <string>

#include "attention/backends/backend.h"
#include "attention/backends/cuda/kernels/arguments.h"

namespace etc {

// Fused kernels on a CUDA device of compute capability 8.0 and up
// (kernels/attention_kernels.cu), in a module (cuda_loader.h): float32 or
// bfloat16 operands of at most 128 columns, scores float32, patterns as runs.
// No operation depends on the order in which threads come: results are the same
// bits in every run on devices of one kind.
//
// Prepare leaves queries, keys and values in the type of the queries with
// adjacent elements in their rows, all else float32; previous scores are
// contiguous.
class CudaBackend final : public FusedBackend {
 public:
  const char* name() const override { return "cuda"; }
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

  // Returns the reason why no problem on `device`, a CUDA device, is supported;
  // empty if some are.
  static std::string UnsupportedDeviceReason(const torch::Device& device);

  // Makes all backends use these kernels, which live as long as the program,
  // or with null those of the module. For tests.
  static void UseKernels(const kernels::cuda::Kernels* kernels);
};

}  // namespace etc

#endif  // ETC_ATTENTION_BACKENDS_CUDA_CUDA_BACKEND_H_
