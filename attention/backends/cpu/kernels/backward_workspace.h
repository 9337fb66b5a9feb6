#ifndef ETC_ATTENTION_BACKENDS_CPU_KERNELS_BACKWARD_WORKSPACE_H_
#define ETC_ATTENTION_BACKENDS_CPU_KERNELS_BACKWARD_WORKSPACE_H_

#include <cstdint>

#include "attention/backends/cpu/kernels/attention_tile.h"
#include "attention/backends/cpu/kernels/tile_sizes.h"

namespace etc::kernels {

// Temporary memory of the backward pass of a tile.
struct BackwardWorkspace {
  BackwardWorkspace(const AttentionHead& head, float* begin) : sizes(head) {
    WorkspaceCursor cursor(begin);
    query = cursor.Take(kTileQueries * sizes.head);
    relative_table = cursor.Take(RoundUp(head.head_dim, kPadding) *
                                 RoundUp(sizes.relative, kPadding));
    relative_bias = cursor.Take(sizes.relative);
    relative = cursor.Take(kTileQueries * sizes.relative);
    relative_gradient = cursor.Take(kTileQueries * sizes.relative);
    context_gradient = cursor.Take(kTileQueries * sizes.value);
    delta = cursor.Take(kTileQueries);
    query_gradient = cursor.Take(kTileQueries * sizes.head);
    keys = cursor.Take(sizes.keys * sizes.head);
    keys_transposed = cursor.Take(head.head_dim * sizes.key_stride);
    values_transposed = cursor.Take(head.value_dim * sizes.key_stride);
    key_gradient = cursor.Take(sizes.keys * sizes.head);
    value_gradient = cursor.Take(sizes.keys * sizes.value);
    scores = cursor.Take(6 * sizes.score_stride);
    relative_scores = cursor.Take(6 * sizes.relative_stride);
    products = cursor.Take(6 * sizes.score_stride);
    weights = cursor.Take(kGradientQueries * sizes.score_stride);
    gradients = cursor.Take(kGradientQueries * sizes.score_stride);
    total = cursor.used();
  }

  TileSizes sizes;
  float* query;              // [queries][head], times 1 / sqrt(d)
  float* relative_table;     // [d][relative] or [relative][head]
  float* relative_bias;      // [relative]
  float* relative;           // [queries][relative]
  float* relative_gradient;  // [queries][relative]: dS by relative column
  float* context_gradient;   // [queries][value]: dO
  float* delta;              // [queries]: dO . O
  float* query_gradient;     // [queries][head]
  float* keys;               // [keys][head]
  float* keys_transposed;    // [d][key_stride]
  float* values_transposed;  // [d_value][key_stride]
  float* key_gradient;       // [keys][head]
  float* value_gradient;     // [keys][value]
  float* scores;             // [6][score_stride]
  float* relative_scores;    // [6][relative_stride]: see GroupScores
  float* products;           // [6][score_stride]: dO . V^T
  float* weights;            // [kGradientQueries][score_stride]: w
  float* gradients;          // [kGradientQueries][score_stride]: dS
  int64_t total;
};

}  // namespace etc::kernels

#endif  // ETC_ATTENTION_BACKENDS_CPU_KERNELS_BACKWARD_WORKSPACE_H_
