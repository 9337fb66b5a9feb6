#ifndef ETC_ATTENTION_BACKENDS_BLOCKED_BLOCKED_BACKEND_H_
#define ETC_ATTENTION_BACKENDS_BLOCKED_BLOCKED_BACKEND_H_

#include <cstdint>
#include <string>

#include "attention/backends/backend.h"

namespace etc {

struct BlockedBackendOptions {
  // Queries that are computed together; 0: by the window's columns.
  int64_t block_length = 0;
  // Numbers of scores computed at a time: as many heads as fit, or one;
  // temporaries are a few times as large.
  int64_t scores_at_once = int64_t{1} << 22;
};

// Windowed attention by tensor operations over blocks of queries
// (blocked_softmax.h), in memory and time linear in their number: any floating
// dtype, any device, patterns as runs or tensors. The backward pass computes
// the scores again, a few heads at a time, and differentiates that by
// LibTorch's autograd.
//
// Operands of 16 bits are converted to float32: products, scores, softmax and
// sums are float32, context and gradients have the dtype of the operands.
class BlockedBackend final : public FusedBackend {
 public:
  explicit BlockedBackend(const BlockedBackendOptions& options = {})
      : options_(options) {}

  const char* name() const override { return "blocked"; }
  std::string UnsupportedReason(const AttentionProblem&) const override {
    return "";
  }
  void Prepare(AttentionProblem* problem) const override;
  ScorePair NewScores(const AttentionProblem& problem) const override;
  AttentionForward Forward(const AttentionProblem& problem) const override;
  void RecomputeScores(const AttentionProblem& problem,
                       bool subtract) const override;
  AttentionGradients Backward(const AttentionProblem& problem,
                              const AttentionForward& forward,
                              const torch::Tensor& context_gradient,
                              const ScoreGradients& scores) const override;

 private:
  int64_t BlockLength(const AttentionProblem& problem) const;

  const BlockedBackendOptions options_;
};

}  // namespace etc

#endif  // ETC_ATTENTION_BACKENDS_BLOCKED_BLOCKED_BACKEND_H_
