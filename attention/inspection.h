#ifndef ETC_ATTENTION_INSPECTION_H_
#define ETC_ATTENTION_INSPECTION_H_

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "attention/attention_operands.h"
#include "attention/dot_product_attention.h"
#include "attention/output_rows.h"
#include "attention/sparse_attention.h"

namespace etc {

// The part of one softmax to look at. B batch, N heads, T queries.
struct SoftmaxSelection {
  // Indices in [0, N); empty: all heads in order.
  std::vector<int64_t> heads = {};
  // Queries as rows b * T + i, [R] int64 or int32 on any device; undefined:
  // all.
  torch::Tensor rows = {};
  bool probabilities = true;
  bool scores = false;
};

// A part of one softmax, with H chosen heads: [B, H, T, columns], or with
// chosen rows [R, H, columns], with the columns of ScorePair. New tensors
// without gradient, float64 for float64 queries, else float32; undefined if not
// asked for.
struct SoftmaxView {
  // Attention weights before dropout: 0 for padding and for every other pair
  // that does not see each other. A row sums to 1 over both blocks, or to 0 if
  // it sees nothing.
  ScorePair probabilities = {};
  // Scores of this layer alone, (q . k + q . E[id] + bias[id]) /
  // sqrt(head_dim), in every residual mode: without kDecay's factor. Here and
  // below 0 for pairs that do not see each other.
  ScorePair new_scores = {};
  // Sum of the scores of the layers below; also undefined if nothing is
  // carried. The layer carries this + `new_scores` (kDecay: times their
  // factor).
  ScorePair carried_scores = {};
};

// Computes, by the formula of SparseAttention, a part of the softmax that it
// computes from this input, by whichever backend. Values are not read. Call it
// before SparseAttention, which may overwrite the previous scores. Needs O(R
// (own columns + other keys)) memory for the result, and beside it that of 64
// rows over their keys, at most 8 MB a tensor or one row; masks in full only if
// the pattern has no runs.
//
// Throws c10::Error for heads and rows that are not there, and as
// SparseAttention does.
SoftmaxView InspectAttention(const SparseAttentionInput& input,
                             const SoftmaxSelection& which = {});
// The same of a layer that has run already: `input.previous` are the scores
// that it carried on, and count it among their layers, instead of those that it
// was given. These are the difference, up to rounding of the sum. Call it
// before the layer above runs, which may overwrite them.
SoftmaxView InspectPastAttention(const SparseAttentionInput& input,
                                 const SoftmaxSelection& which = {});
// The same as InspectAttention for DotProductAttention: all its keys are
// `other` keys, and `own` tensors have no columns; or, if its pattern has a
// window, the other way around.
SoftmaxView InspectAttention(const DotProductAttentionInput& input,
                             const SoftmaxSelection& which = {});

// The part of both softmaxes of a layer to look at.
struct AttentionSelection {
  // Indices of heads; empty: all heads in order.
  std::vector<int64_t> heads = {};
  // Queries: rows b * length + t of each stream, on any device; undefined: all
  // its tokens.
  OutputRows rows = {};
  bool probabilities = true;
  bool scores = false;
};

// Numbers for the four blocks of a layer, with H chosen heads, L long and G
// global tokens, W = 2 local_radius + 1, of a causal layer local_radius + 1. Of
// rows: [R, H, ...] and [S, H, ...].
struct FourBlocks {
  torch::Tensor g2g = {};  // [B, H, G, G]
  torch::Tensor g2l = {};  // [B, H, G, L]
  torch::Tensor l2g = {};  // [B, H, L, G]
  // [B, H, L, W]; column w of row i is key i + w - radius
  torch::Tensor l2l = {};
};

// A part of a layer: see SoftmaxView. Rows of probabilities sum to 1 over l2l
// and l2g, and over g2g and g2l.
struct AttentionView {
  FourBlocks probabilities = {};
  FourBlocks new_scores = {};
  FourBlocks carried_scores = {};
};

}  // namespace etc

#endif  // ETC_ATTENTION_INSPECTION_H_
