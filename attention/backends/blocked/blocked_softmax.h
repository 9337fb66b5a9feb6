#ifndef ETC_ATTENTION_BACKENDS_BLOCKED_BLOCKED_SOFTMAX_H_
#define ETC_ATTENTION_BACKENDS_BLOCKED_BLOCKED_SOFTMAX_H_

#include <torch/types.h>

#include <cstdint>

#include "attention/attention_problem.h"

namespace etc {

// The formulas of one softmax (backends/reference/dense_attention.h) by blocks
// of queries: b consecutive queries together see the own keys of a span of b +
// W - 1, W the columns of a window, so that their scores are one matrix
// product, of which the windows are parts (windows.h). Without a window there
// is one block of all queries.
//
// Plain tensor operations, differentiable, for any number of heads: operands
// and scores may be those of some heads of the problem. All is computed in
// ScoreType; only operands, context and their gradients have fewer bits.
class BlockedSoftmax {
 public:
  // `block_length`: queries of a block, at least 1. Asks the pattern for its
  // masks.
  BlockedSoftmax(const AttentionProblem& problem, int64_t block_length);

  // score_factor (q . k + q . E[id] + bias[id]) / sqrt(d), 0 where a window
  // reaches beyond the sequence. Does not read values.
  ScorePair Scores(const AttentionOperands& operands) const;

  // [B, heads, T, e] in the dtype of the values, from logits times the divisor:
  // scores summed over the layers or, with gates, GatedLogits.
  // `dropout_factors` may be undefined: 1.
  torch::Tensor Context(const ScorePair& sums, const torch::Tensor& own_value,
                        const torch::Tensor& other_value,
                        const ScorePair& dropout_factors) const;

 private:
  bool has_window() const { return pattern_.window.is_restricted(); }

  const SoftmaxPattern pattern_;
  const int64_t block_length_;
  const double score_factor_;
  const double divisor_;
  const SoftmaxMasks masks_;
  // [B, 1, T, columns of both]
  torch::Tensor forbidden_;
  torch::Tensor sees_any_;  // [B, 1, T, 1]
  // The logits of forbidden keys, [B, 1, T, 1].
  torch::Tensor forbidden_logit_;
  // [T, columns of own], true beyond the sequence; undefined without a window.
  torch::Tensor beyond_;
};

// own + gate * previous, the logits of a layer with gates, of some heads. New
// tensors.
ScorePair GatedLogits(const ScorePair& own, const ResidualGates& gates,
                      const ScorePair& previous);

}  // namespace etc

#endif  // ETC_ATTENTION_BACKENDS_BLOCKED_BLOCKED_SOFTMAX_H_
