#ifndef ETC_ATTENTION_BACKENDS_CPU_KERNELS_TILE_SIZES_H_
#define ETC_ATTENTION_BACKENDS_CPU_KERNELS_TILE_SIZES_H_

#include <algorithm>
#include <cstdint>

#include "attention/backends/cpu/kernels/attention_tile.h"
#include "attention/backends/cpu/kernels/rounded_products.h"

namespace etc::kernels {

// The longest vector of any target that we compile for, in floats.
inline constexpr int64_t kPadding = 16;

// Keys that are packed together, and read again for every six queries. Their
// packed keys and values, and in the backward pass their gradients, should stay
// in a second-level cache of 1 MB.
inline constexpr int64_t kChunkKeys = 384;

// With a window all keys of a tile are packed together, since only those of the
// window are in use at a time; unless there are more than this.
inline constexpr int64_t kMostKeys = 2048;

// Keys and values, and queries, are packed in steps of this many, shortly
// before they are needed.
inline constexpr int64_t kPackedKeys = 64;
inline constexpr int64_t kPackedQueries = 48;

// Queries whose score gradients are kept before keys and values get theirs, and
// those of rounded products.
inline constexpr int64_t kGradientQueries = 48;
inline constexpr int64_t kRoundedGradientQueries = 64;
static_assert(kTileQueries % kGradientQueries == 0);
static_assert(kTileQueries % kRoundedGradientQueries == 0);

// Queries whose scores are computed together: as many rows as the registers of
// float products hold, or kRoundedRows.
inline constexpr int64_t kFloatGroupRows = 6;
inline constexpr int64_t kMostGroupRows =
    std::max(kFloatGroupRows, kRoundedRows);

constexpr int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Keys of a block that are packed together, at most.
inline int64_t ChunkKeys(const KeyBlock& block) {
  const int64_t hull = kTileQueries + block.window.columns() - 1;
  const bool at_once = block.window.is_restricted() && hull <= kMostKeys;
  return RoundUp(std::min(block.keys, at_once ? hull : kChunkKeys), kPadding);
}

// Row stride of matrices with a column for each of `keys` keys: space for a
// vector behind the last, and an odd number of 64-byte lines, so that rows do
// not compete for the same lines of the first-level cache.
inline int64_t KeyStride(int64_t keys) {
  const int64_t lines = RoundUp(keys, kPadding) / kPadding + 1;
  return (lines | 1) * kPadding;
}

// Row lengths in a tile's workspace.
struct TileSizes {
  explicit TileSizes(const AttentionHead& attention)
      : group_rows(attention.rounded == nullptr ? kFloatGroupRows
                                                : kRoundedRows),
        head(RoundUp(attention.head_dim, kPadding)),
        value(RoundUp(attention.value_dim, kPadding)),
        head_depth(RoundUp(attention.head_dim, kRoundedDepth)),
        value_depth(RoundUp(attention.value_dim, kRoundedDepth)),
        relative(
            attention.relative == nullptr
                ? 0
                : RoundUp(RelativeColumns(attention.max_distance), kPadding)),
        relative_depth(RoundUp(relative, kRoundedDepth)) {
    // Rounded products begin at a multiple of their columns.
    const int64_t queries = attention.rounded == nullptr
                                ? kGradientQueries
                                : kRoundedGradientQueries + kRoundedColumns - 1;
    for (const KeyBlock& block : attention.blocks) {
      const int64_t chunk = ChunkKeys(block);
      const int64_t hull = queries + block.window.columns() - 1;
      keys = std::max(keys, chunk);
      scores = std::max(
          scores, block.window.is_restricted() ? std::min(chunk, hull) : chunk);
    }
    key_stride = KeyStride(keys);
    score_stride = KeyStride(scores);
    score_depth = RoundUp(score_stride, kRoundedDepth);
    relative_stride =
        std::max(score_stride,
                 RoundUp(2 * attention.max_distance + 2 * kPadding, kPadding));
  }

  int64_t group_rows;  // queries whose scores are computed together
  int64_t head;
  int64_t value;
  int64_t head_depth;  // of rounded products, idem
  int64_t value_depth;
  int64_t relative;
  int64_t relative_depth;
  int64_t keys = 0;    // of a chunk, at most
  int64_t scores = 0;  // of the queries kept at a time and a chunk, at most
  int64_t key_stride;
  int64_t score_stride;
  int64_t score_depth;
  int64_t relative_stride;  // of relative scores, by key or by distance
};

// Allocates parts of a workspace, one behind the other.
class WorkspaceCursor {
 public:
  explicit WorkspaceCursor(float* begin) : begin_(begin) {}

  float* Take(int64_t floats) { return Take<float>(floats); }
  template <typename T>
  T* Take(int64_t count) {
    constexpr auto kSize = static_cast<int64_t>(sizeof(T));
    float* const taken = begin_ == nullptr ? nullptr : begin_ + used_;
    used_ += RoundUp(RoundUp(count * kSize, 4) / 4, kPadding);
    return reinterpret_cast<T*>(taken);
  }
  int64_t used() const { return used_; }

 private:
  float* begin_;
  int64_t used_ = 0;
};

}  // namespace etc::kernels

#endif  // ETC_ATTENTION_BACKENDS_CPU_KERNELS_TILE_SIZES_H_
