#ifndef ETC_ATTENTION_BACKENDS_CPU_KERNELS_BACKWARD_WORKSPACE_H_
#define ETC_ATTENTION_BACKENDS_CPU_KERNELS_BACKWARD_WORKSPACE_H_

#include <cstdint>

#include "attention/backends/cpu/kernels/attention_tile.h"
#include "attention/backends/cpu/kernels/tile_sizes.h"

namespace etc::kernels {

// Temporary memory of the backward pass of a tile, beside the packed operands
// (backward_products-inl.h).
struct BackwardWorkspace {
  BackwardWorkspace(const AttentionHead& head, float* begin) : sizes(head) {
    WorkspaceCursor cursor(begin);
    relative = cursor.Take(kTileQueries * sizes.relative);
    relative_gradient = cursor.Take(kTileQueries * sizes.relative);
    delta = cursor.Take(kTileQueries);
    query_gradient = cursor.Take(kTileQueries * sizes.head);
    scores = cursor.Take(sizes.group_rows * sizes.score_stride);
    relative_scores = cursor.Take(sizes.group_rows * sizes.relative_stride);
    products = cursor.Take(sizes.group_rows * sizes.score_stride);
    operands = cursor.Take(0);
    total = cursor.used();
  }

  TileSizes sizes;
  float* relative;           // [queries][relative]
  float* relative_gradient;  // [queries][relative]: dS by relative column
  float* delta;              // [queries]: dO . O
  float* query_gradient;     // [queries][head]
  float* scores;             // [group_rows][score_stride]
  float* relative_scores;    // [group_rows][relative_stride]: see GroupScores
  float* products;           // [group_rows][score_stride]: dO . V^T
  float* operands;           // behind the rest
  int64_t total;             // without the operands
};

}  // namespace etc::kernels

#endif  // ETC_ATTENTION_BACKENDS_CPU_KERNELS_BACKWARD_WORKSPACE_H_
