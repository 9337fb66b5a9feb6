#ifndef ETC_ATTENTION_BACKENDS_BACKEND_H_
#define ETC_ATTENTION_BACKENDS_BACKEND_H_

#include <torch/types.h>

#include <string>
#include <vector>

#include "attention/attention_operands.h"
#include "attention/attention_problem.h"

namespace etc {

class FusedBackend;

struct AttentionForward {
  torch::Tensor context;  // [B, N, T, e]
  // Scores to carry to the layer above; undefined unless the problem says so.
  ScorePair scores;
  // Tensors that a fused backend saves for Backward, beside its inputs and
  // `context`, such as sums of exponentials.
  std::vector<torch::Tensor> saved;
};

// A way to compute softmax attention:
//
//   own     = score_factor (q . k + q . E[id] + bias[id]) / sqrt(d)
//   carried = previous + own
//   logit   = carried / divisor, or with gates own + gate previous
//   context = dropout(softmax over visible keys of logit) . v
//
// All backends agree up to rounding (backends/reference/dense_attention.h is
// the definition). There are two kinds. The reference has Forward alone:
// LibTorch's autograd differentiates its operations, also twice. A fused
// backend computes gradients itself, and is the FusedBackend that fused()
// gives; SparseAttention makes a node of autograd's graph of it.
//
// Backends have no state that changes, and live as long as the program.
class AttentionBackend {
 public:
  virtual const char* name() const = 0;

  // Returns the reason why the backend does not support this; empty if it does.
  virtual std::string UnsupportedReason(
      const AttentionProblem& problem) const = 0;

  // Null for the reference.
  virtual const FusedBackend* fused() const { return nullptr; }

  // Scores of pairs that may not see each other are unspecified, but finite: in
  // the layers above a query sees no keys but those that it sees here, so that
  // no result depends on them.
  virtual AttentionForward Forward(const AttentionProblem& problem) const = 0;

 protected:
  ~AttentionBackend() = default;
};

// The scores' part in the backward pass.
struct ScoreGradients {
  // Gradients of the carried scores, in any layout; either undefined: zeros.
  ScorePair carried;
  // Outputs for the gradients of the previous scores: tensors of NewScores, may
  // be those of `carried`. Undefined: not wanted.
  ScorePair previous;
  // True if the carried scores are to become the previous ones again, in place.
  bool undo = false;
};

// Gradients of the tensors of a problem but for its scores; undefined where
// these are.
struct AttentionGradients {
  AttentionOperands operands;
  ResidualGates gates;
};

// A backend whose passes are outside of autograd. Problems are those that
// Prepare gave; their `carried` scores are where the forward pass leaves them
// and the backward pass finds them, tensors of NewScores.
class FusedBackend : public AttentionBackend {
 public:
  const FusedBackend* fused() const final { return this; }

  // Brings the tensors of a problem that it supports into the dtype and layout
  // that the passes read, by operations that autograd records.
  virtual void Prepare(AttentionProblem* problem) const = 0;

  // Uninitialised tensors for scores.
  virtual ScorePair NewScores(const AttentionProblem& problem) const = 0;

  // Scores once more, without a context: carried = previous + own, or with
  // `subtract` previous - own.
  virtual void RecomputeScores(const AttentionProblem& problem,
                               bool subtract) const = 0;

  // `forward` is the result of the forward pass; `context_gradient` may be
  // undefined: zeros. With gates, the previous scores are carried - own, exact
  // up to the rounding of `carried`.
  virtual AttentionGradients Backward(const AttentionProblem& problem,
                                      const AttentionForward& forward,
                                      const torch::Tensor& context_gradient,
                                      const ScoreGradients& scores) const = 0;

 protected:
  ~FusedBackend() = default;
};

}  // namespace etc

#endif  // ETC_ATTENTION_BACKENDS_BACKEND_H_
