#ifndef ETC_ATTENTION_BACKENDS_CPU_KERNELS_ATTENTION_TILE_H_
#define ETC_ATTENTION_BACKENDS_CPU_KERNELS_ATTENTION_TILE_H_

#include <cstdint>

#include "attention/backends/cpu/kernels/attention_head.h"

namespace etc::kernels {

// Fused sparse attention of one tile of consecutive queries of one batch entry
// and head: plain pointers, no allocation, no threads, float32. Nothing is
// checked here; callers must keep to what is stated below. Strides are in
// elements, between rows; the elements of a row are adjacent. Rows of keys and
// queries are numbered from the beginning of the sequence.

// Queries of a tile, at most.
inline constexpr int64_t kTileQueries = 768;

struct ForwardResults {
  // Rows of value_dim. Null: only scores are wanted; then the two below are
  // null as well.
  float* context = nullptr;
  int64_t context_stride = 0;
  // Statistics of each query, from which the backward pass recomputes the
  // probabilities: the largest logit times the divisor, and 1 / the sum of
  // exponentials, 0 if no key is visible.
  float* row_max = nullptr;
  float* row_inverse_sum = nullptr;
  // Scores from the layer below, and those to carry on: previous + own, where a
  // key is visible. Elsewhere they are 0: that is written, unless both are
  // the same rows (in which it is there already). Otherwise the two must not
  // overlap.
  ScoreRows<const float> previous[2];
  ScoreRows<float> carried[2];
  // Carries previous - own, which takes a layer's scores back. Not with a
  // context.
  bool subtract = false;
};

// Floats of workspace that a tile needs, forward or backward.
int64_t ForwardWorkspaceSize(const AttentionHead& head);
int64_t BackwardWorkspaceSize(const AttentionHead& head);

// Queries [begin, end), at most kTileQueries.
void ForwardTile(const AttentionHead& head, int64_t begin, int64_t end,
                 const ForwardResults& results, float* workspace);

// The buffer in which the gradients of rows [begin, end) are summed.
struct GradientRows {
  float* rows = nullptr;  // of row `begin`
  int64_t stride = 0;
  int64_t begin = 0;
  int64_t end = 0;
};

// Gradients of a matrix, in up to three pieces that together hold every row
// that gets any (a head of a long sequence is divided into parts, each of which
// accumulates separately the rows of its halo).
struct GradientPieces {
  GradientRows pieces[3];
};

struct BackwardInputs {
  // Inputs and results of the forward pass.
  const float* context = nullptr;
  int64_t context_stride = 0;
  const float* row_max = nullptr;
  const float* row_inverse_sum = nullptr;
  // Carried scores; without them the scores are computed again, which is right
  // only if there were no previous ones.
  ScoreRows<const float> carried[2];

  const float* context_gradient = nullptr;
  int64_t context_gradient_stride = 0;
  // Gradients of the carried scores. May be the rows of
  // BackwardResults::previous.
  ScoreRows<const float> carried_gradient[2];
  // Restricts the pass to these keys of each block, [begin, end).
  KeyRun keys[2] = {};
};

struct BackwardResults {
  // Gradients are added to all of them. None of them is touched by a tile whose
  // queries see no key of BackwardInputs::keys.
  GradientPieces query;
  GradientPieces key[2];
  GradientPieces value[2];
  // [2m + 4][RelativeGradientStride(head_dim)]: row c is that of the id
  // RelativeIdOfColumn(c, m); its bias is at column head_dim.
  float* relative = nullptr;
  // [2]: of the gates of both blocks; null unless the head is gated.
  float* gates = nullptr;
  // Gradients of the previous scores: written, as carried scores are. (Only the
  // columns of BackwardInputs::keys.)
  ScoreRows<float> previous[2];
  // Output for carried - own, the previous scores up to rounding: the rows of
  // BackwardInputs::carried. Null: not wanted.
  ScoreRows<float> undone[2];
};

int64_t RelativeGradientStride(int64_t head_dim);

void BackwardTile(const AttentionHead& head, int64_t begin, int64_t end,
                  const BackwardInputs& inputs, const BackwardResults& results,
                  float* workspace);

}  // namespace etc::kernels

#endif  // ETC_ATTENTION_BACKENDS_CPU_KERNELS_ATTENTION_TILE_H_
