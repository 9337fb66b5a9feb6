#ifndef ETC_ATTENTION_DOT_PRODUCT_ATTENTION_H_
#define ETC_ATTENTION_DOT_PRODUCT_ATTENTION_H_

#include <torch/types.h>

#include <cstdint>

#include "attention/attention_operands.h"
#include "attention/residual_scores.h"
#include "attention/softmax_pattern.h"
#include "attention/sparse_attention.h"
#include "base/linear.h"

namespace etc {

// Scores over one block of keys, summed over layers, as one layer carries them
// to the next (ResidualScores): never masked, never divided.
struct ResidualKeyScores {
  // [B, N, T, S], or where the pattern has a window [B, N, T, its columns], as
  // ScorePair says of own keys; undefined: zeros.
  ScoreTensor sum = {};
  int64_t layers = 0;  // layers in the sum
};

// Attention of T queries to S keys, which need not be the same tokens. B batch,
// N heads, d head_dim, e value_dim.
struct DotProductAttentionInput {
  torch::Tensor query = {};  // [B, N, T, d]
  torch::Tensor key = {};    // [B, N, S, d]
  torch::Tensor value = {};  // [B, N, S, e]
  // Visibility: AllKeysPattern (dense encoders, cross attention), CausalPattern
  // (decoders) or another of attention/softmax_pattern.h.
  SoftmaxPattern pattern = {};
  // Undefined unless the pattern has relative ids; else at least
  // RelativeVocabSize(max_distance) rows (attention/pattern.h).
  RelativeTable relative = {};

  ResidualOptions residual = {};
  // Scores of the layer below, in which each query saw at least the keys that
  // it sees here (ResidualScores).
  ResidualKeyScores previous = {};
  // [N], of kGate: needed where there are previous scores.
  torch::Tensor gate = {};
  // Rounding of the factors of products (SparseAttentionInput).
  LinearPrecision precision = LinearPrecision::kFloat32;
  // Probability of dropping an attention weight, in [0, 1); 0 outside of
  // training.
  double dropout = 0.0;
};

// Context and scores are both differentiable.
struct DotProductAttentionOutput {
  torch::Tensor context = {};  // [B, N, T, e], dtype of the query
  // Scores for the layer above; undefined with kOff. Those of pairs that may
  // not see each other are unspecified, but finite.
  ResidualKeyScores scores = {};
};

// SparseAttention over one block of keys:
//
//   scores  = (q . k + q . E[id] + bias[id]) / sqrt(d) + previous
//   context = dropout(softmax over visible keys of (scores / divisor)) . v
//
// but for kDecay and kGate (attention/residual_attention.h). A query that sees
// no key has context 0. Differentiable in query, key, value, relative table,
// gate and previous scores. Throws c10::Error as SparseAttention does,
// and for a relative table beside a pattern without relative ids.
DotProductAttentionOutput DotProductAttention(
    const DotProductAttentionInput& input,
    AttentionImplementation implementation = AttentionImplementation::kAuto);

}  // namespace etc

#endif  // ETC_ATTENTION_DOT_PRODUCT_ATTENTION_H_
