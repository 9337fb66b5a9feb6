#ifndef ETC_ATTENTION_BACKENDS_CPU_KERNELS_FORWARD_WORKSPACE_H_
#define ETC_ATTENTION_BACKENDS_CPU_KERNELS_FORWARD_WORKSPACE_H_

#include <cstdint>

#include "attention/backends/cpu/kernels/attention_tile.h"
#include "attention/backends/cpu/kernels/tile_sizes.h"

namespace etc::kernels {

// Temporary memory of the forward pass of a tile, beside the packed operands
// (forward_products-inl.h).
struct ForwardWorkspace {
  ForwardWorkspace(const AttentionHead& head, float* begin) : sizes(head) {
    WorkspaceCursor cursor(begin);
    relative = cursor.Take(kTileQueries * sizes.relative);
    for (int64_t panel = 0; panel < 2; ++panel) {
      scores[panel] = cursor.Take(sizes.group_rows * sizes.score_stride);
      relative_scores[panel] =
          cursor.Take(sizes.group_rows * sizes.relative_stride);
    }
    context = cursor.Take(kTileQueries * sizes.value);
    row_max = cursor.Take(kTileQueries + kPadding);
    row_sum = cursor.Take(kTileQueries + kPadding);
    operands = cursor.Take(0);
    total = cursor.used();
  }

  TileSizes sizes;
  // Queries are those of the tile; where a group is finished before others are
  // packed, the rows of kPackedQueries are used again and again.
  float* relative;  // [queries][relative]
  // Scores of a group's queries and the keys of each panel.
  float* scores[2];           // [group_rows][score_stride]
  float* relative_scores[2];  // [group_rows][relative_stride]: see GroupScores
  float* context;   // [queries][value], of exponentials not yet divided
  float* row_max;   // [queries], of scores
  float* row_sum;   // [queries], of exponentials
  float* operands;  // behind the rest
  int64_t total;    // without the operands
};

}  // namespace etc::kernels

#endif  // ETC_ATTENTION_BACKENDS_CPU_KERNELS_FORWARD_WORKSPACE_H_
