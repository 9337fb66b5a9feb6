#ifndef ETC_ATTENTION_SCORE_STATISTICS_H_
#define ETC_ATTENTION_SCORE_STATISTICS_H_

#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "attention/sparse_attention.h"

namespace etc {

// Moments of some numbers.
struct NumberMoments {
  int64_t count = 0;
  double sum = 0.0;
  double sum_of_squares = 0.0;

  // 0 without numbers; the deviation is that of the population.
  double mean() const;
  double standard_deviation() const;
};

// New and carried scores of the same pairs, in one head.
struct ScorePairMoments {
  NumberMoments new_scores = {};
  NumberMoments carried_scores = {};
  double sum_of_products = 0.0;

  // Pearson's correlation of the two, from -1 to 1. Nothing without pairs, and
  // where either is the same number for all pairs.
  std::optional<double> correlation() const;
};

// Scores of one block, over all heads and the pairs of a measured query and a
// key that see each other. s_n and S_n are those of
// attention/residual_attention.h.
struct BlockStatistics {
  // s_n, the scores of this layer alone: without kDecay's factor.
  NumberMoments new_scores = {};
  // S_{n-1}, as the layer below carried them; none if nothing is carried.
  NumberMoments carried_scores = {};
  // The largest |S_n|; with kOff |s_n|, although nothing is carried. 0 without
  // pairs.
  double largest_score = 0.0;
  // Both scores of each head, [N]; empty if nothing is carried.
  std::vector<ScorePairMoments> heads = {};
};

// Entropy -sum(p ln p) of the attention weights of a row, in nats, before
// dropout: over all keys of both blocks of its softmax, from 0 to the logarithm
// of their number. Rows that see nothing do not count.
struct EntropyStatistics {
  int64_t rows = 0;  // times heads
  double sum = 0.0;

  double mean() const;  // 0 without rows
};

// Statistics of one softmax: "own" and "other" as in AttentionOperands.
struct SoftmaxStatistics {
  BlockStatistics own = {};
  BlockStatistics other = {};
  EntropyStatistics entropy = {};
};

// Statistics of a layer's two softmaxes: that of long queries has the blocks
// l2l and l2g, that of global ones g2g and g2l.
struct LayerStatistics {
  BlockStatistics g2g = {};
  BlockStatistics g2l = {};
  BlockStatistics l2g = {};
  BlockStatistics l2l = {};
  EntropyStatistics long_entropy = {};
  EntropyStatistics global_entropy = {};

  // The largest score of the four blocks.
  double largest_score() const;
};

// Measures, by the formula of SparseAttention, the softmax that it computes
// from this input, by whichever backend. `rows` are queries b * T + i, [R]
// int64 or int32 on any device; undefined: all. Values are not read. Sums are
// float64. Call it before SparseAttention, which may overwrite the previous
// scores. Needs the memory of 64 rows over their keys, at most 8 MB a tensor or
// one row, and waits once for a device.
//
// Throws c10::Error for rows that are not there, and as SparseAttention does.
SoftmaxStatistics MeasureAttention(const SparseAttentionInput& input,
                                   const torch::Tensor& rows = {});

}  // namespace etc

#endif  // ETC_ATTENTION_SCORE_STATISTICS_H_
