#ifndef ETC_ATTENTION_BACKENDS_REFERENCE_DENSE_ATTENTION_H_
#define ETC_ATTENTION_BACKENDS_REFERENCE_DENSE_ATTENTION_H_

#include <torch/types.h>

#include "attention/attention_operands.h"

namespace etc {

// Attention of every query to every key, B batch, N heads, d head_dim.
struct DenseAttentionInput {
  torch::Tensor query;  // [B, N, queries, d]
  torch::Tensor key;    // [B, N, keys, d]
  torch::Tensor value;  // [B, N, keys, d_value]
  // May be undefined: everything allowed.
  torch::Tensor mask;  // [B, queries, keys] bool, true where allowed
  // Undefined: no relative term. Otherwise `relative` is defined.
  torch::Tensor relative_ids;  // [B, queries, keys] int64 in [0, R)
  RelativeTable relative;
  // Scores carried from the layer below; undefined: zeros.
  torch::Tensor previous;  // [B, N, queries, keys]
  // Factor of the scores of this layer; 1 but for a decay.
  double score_factor = 1.0;
  // The divisor of the carried sum for the softmax (RealFormer's running mean,
  // a decay); 1 otherwise.
  double divisor = 1.0;
  // The factor of previous scores in the logits, [N, keys]; undefined: 1.
  // Defined only if `previous` is and `divisor` is 1.
  torch::Tensor gates;
  // The factor of each weight, 0 if it is dropped, else 1 / (1 - probability);
  // undefined: 1.
  torch::Tensor dropout_factors;  // [B, N, queries, keys]
};

struct DenseAttentionOutput {
  torch::Tensor context;  // [B, N, queries, d_value]
  torch::Tensor scores;   // [B, N, queries, keys], for the layer above
};

// The definition of attention in this library (doc/model.md 3.2 and 10.1):
//
//   own     = score_factor (q . k + q . E[id] + bias[id]) / sqrt(d)
//   scores  = own + previous
//   logits  = scores / divisor, or with gates own + gates previous
//   context = dropout(softmax over allowed keys of logits) . v
//
// Scores are carried unmasked and undivided. A key that is not allowed has
// probability exactly 0, and a query without any allowed key has context 0
// (the official code adds -10000 instead, and averages over all keys in the
// latter case: doc/model.md 3.2, point 7).
//
// Plain tensor operations: any floating dtype, any device, differentiable,
// O(queries x keys) memory. All is computed in ScoreType
// (attention/attention_problem.h), and the context is rounded to the dtype of
// the queries. Throws c10::Error if shapes disagree.
DenseAttentionOutput DenseAttention(const DenseAttentionInput& input);

// Its parts. The scores of this layer alone, (q . k + q . E[id] + bias[id]) /
// sqrt(d), without factor and `previous`: [B, N, queries, keys] in ScoreType.
// Reads no values.
torch::Tensor DenseScores(const DenseAttentionInput& input);
// Sums and logits of a layer.
struct DenseLogits {
  torch::Tensor scores;  // to carry to the layer above
  torch::Tensor logits;  // not masked
};
DenseLogits DenseLogitsOf(const DenseAttentionInput& input,
                          const torch::Tensor& own_scores);
// The softmax over allowed keys, before dropout. Reads nothing else of the
// input than the mask.
torch::Tensor DenseProbabilities(const DenseAttentionInput& input,
                                 const torch::Tensor& logits);

// (q . E[id] + bias[id]) for each id: [B, N, queries, R].
torch::Tensor RelativeScoresById(const torch::Tensor& query,
                                 const RelativeTable& relative);

// The logits of keys that are not allowed, in `dtype`: -infinity, so that any
// finite logit of an allowed key is larger; but 0 for a query that is allowed
// no key, whose softmax would be NaN. `sees_any`: bool, true for queries that
// are allowed any key.
torch::Tensor ForbiddenLogit(const torch::Tensor& sees_any,
                             torch::ScalarType dtype);

}  // namespace etc

#endif  // ETC_ATTENTION_BACKENDS_REFERENCE_DENSE_ATTENTION_H_
