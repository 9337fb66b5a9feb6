#ifndef ETC_ATTENTION_BACKENDS_CPU_KERNELS_FORWARD_WORKSPACE_H_
#define ETC_ATTENTION_BACKENDS_CPU_KERNELS_FORWARD_WORKSPACE_H_

#include <cstdint>

#include "attention/backends/cpu/kernels/attention_tile.h"
#include "attention/backends/cpu/kernels/tile_sizes.h"

namespace etc::kernels {

// Temporary memory of the forward pass of a tile.
struct ForwardWorkspace {
  ForwardWorkspace(const AttentionHead& head, float* begin) : sizes(head) {
    WorkspaceCursor cursor(begin);
    query = cursor.Take(kTileQueries * sizes.head);
    relative_table = cursor.Take(head.head_dim * sizes.relative);
    relative_bias = cursor.Take(sizes.relative);
    relative = cursor.Take(kTileQueries * sizes.relative);
    for (PanelWorkspace& panel : panels) {
      panel.keys = cursor.Take(head.head_dim * sizes.key_stride);
      panel.values = cursor.Take(sizes.keys * sizes.value);
      panel.scores = cursor.Take(6 * sizes.score_stride);
      panel.relative_scores = cursor.Take(6 * sizes.relative_stride);
    }
    context = cursor.Take(kTileQueries * sizes.value);
    row_max = cursor.Take(kTileQueries + kPadding);
    row_sum = cursor.Take(kTileQueries + kPadding);
    total = cursor.used();
  }

  // Workspace for keys that are packed together, and six queries that see them.
  struct PanelWorkspace {
    float* keys;             // [d][KeyStride(keys)], transposed
    float* values;           // [keys][value]
    float* scores;           // [6][score_stride]
    float* relative_scores;  // [6][relative_stride]: see GroupScores
  };

  TileSizes sizes;
  // Queries are those of the tile; where six are finished before others are
  // packed, the rows of kPackedQueries are used again and again.
  float* query;           // [queries][head], times 1 / sqrt(d)
  float* relative_table;  // [d][relative]
  float* relative_bias;   // [relative]
  float* relative;        // [queries][relative]
  PanelWorkspace panels[2];
  float* context;  // [queries][value], of exponentials not yet divided
  float* row_max;  // [queries], of scores
  float* row_sum;  // [queries], of exponentials
  int64_t total;
};

}  // namespace etc::kernels

#endif  // ETC_ATTENTION_BACKENDS_CPU_KERNELS_FORWARD_WORKSPACE_H_
