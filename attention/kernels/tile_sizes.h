#ifndef ETC_ATTENTION_KERNELS_TILE_SIZES_H_
#define ETC_ATTENTION_KERNELS_TILE_SIZES_H_

#include <cstdint>

#include "attention/kernels/attention_tile.h"

namespace etc::kernels {

// The longest vector of any target that we compile for, in floats.
inline constexpr int64_t kPadding = 16;

// Keys that are packed together. Their packed keys and values, and in the
// backward pass their gradients, should stay in a second-level cache of 1 MB.
inline constexpr int64_t kChunkKeys = 384;

// Row stride of matrices with a column for each key of a chunk: room for a
// vector behind the last, and an odd number of 64-byte lines, so that rows do
// not compete for the same lines of the first-level cache.
inline constexpr int64_t kKeyStride = kChunkKeys + kPadding;
static_assert(kKeyStride / kPadding % 2 == 1);

// Queries whose score gradients are kept before keys and values get theirs.
inline constexpr int64_t kGradientQueries = 48;
static_assert(kTileQueries % kGradientQueries == 0);

constexpr int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Row lengths in a tile's workspace.
struct TileSizes {
  explicit TileSizes(const AttentionHead& attention)
      : head(RoundUp(attention.head_dim, kPadding)),
        value(RoundUp(attention.value_dim, kPadding)),
        relative(attention.relative == nullptr
                     ? 0
                     : RoundUp(2 * attention.max_distance + 4, kPadding)) {}

  int64_t head;
  int64_t value;
  int64_t relative;
};

// Hands out parts of a workspace.
class WorkspaceCursor {
 public:
  explicit WorkspaceCursor(float* begin) : begin_(begin) {}

  float* Take(int64_t floats) {
    float* const taken = begin_ == nullptr ? nullptr : begin_ + used_;
    used_ += RoundUp(floats, kPadding);
    return taken;
  }
  int64_t used() const { return used_; }

 private:
  float* begin_;
  int64_t used_ = 0;
};

}  // namespace etc::kernels

#endif  // ETC_ATTENTION_KERNELS_TILE_SIZES_H_
