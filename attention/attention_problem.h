#ifndef ETC_ATTENTION_ATTENTION_PROBLEM_H_
#define ETC_ATTENTION_ATTENTION_PROBLEM_H_

#include <cstdint>

#include "attention/attention_operands.h"
#include "attention/softmax_pattern.h"
#include "base/linear.h"

namespace etc {

struct SparseAttentionInput;

// One softmax as backends compute it: a checked SparseAttentionInput, without
// the settings that only the layers above a backend need.
struct AttentionProblem {
  AttentionOperands operands;
  SoftmaxPattern pattern;
  // Scores carried from the layer below; undefined: zeros.
  ScorePair previous;
  // True if scores are carried to the layer above.
  bool carry = false;
  // The output tensors of a fused backend for carried scores: may be
  // `previous`, otherwise does not overlap it. The reference makes new tensors.
  ScorePair carried;
  // ResidualAttention's a, b and c (attention/residual_attention.h): own scores
  // have the factor c, and the sum is divided by `divisor` for the softmax; or,
  // where there are gates, these are the factors of the previous scores, and
  // both others 1. Gates are defined only if `previous` is.
  double score_factor = 1.0;
  double divisor = 1.0;
  ResidualGates gates;
  LinearPrecision precision = LinearPrecision::kFloat32;
  // Probability of dropping an attention weight; base/random.h says which ones
  // the seed drops.
  double dropout = 0.0;
  uint64_t dropout_seed = 0;
  int64_t first_head = 0;  // of the heads that dropout is a function of
};

// The sizes of a problem.
struct AttentionSizes {
  explicit AttentionSizes(const AttentionProblem& problem);

  int64_t batch, heads, queries, own_keys, other_keys, head_dim, value_dim;
  int64_t own_columns;  // of own scores: see ScorePair
};

// Throws c10::Error unless all tensors have the shapes and dtypes that
// AttentionOperands, ResidualGates and ScorePair state and fit the pattern,
// settings are in their range, and the relative table has all ids of a pattern
// of runs: kernels read it without looking at each id.
AttentionProblem MakeAttentionProblem(const SparseAttentionInput& input);

// Returns the dtype in which scores, softmax and sums of some operands are
// computed: float32 for operands of 16 bits, else their own.
torch::ScalarType ScoreType(const torch::Tensor& operand);

// The factor of previous scores in the logits for each head and key, own keys
// first: [N, own + other keys] in ScoreType of the queries; undefined without
// gates.
torch::Tensor GatesOfKeys(const AttentionProblem& problem);

}  // namespace etc

#endif  // ETC_ATTENTION_ATTENTION_PROBLEM_H_
