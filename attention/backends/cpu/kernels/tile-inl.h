// Parts common to the forward and backward passes of a tile: sizes, the packed
// queries and relative table, chunks of keys. Compiled once for each SIMD
// target: see foreach_target.h of Highway.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "attention/backends/cpu/kernels/attention_tile.h"
#include "attention/backends/cpu/kernels/key_runs-inl.h"
#include "attention/backends/cpu/kernels/matrix-inl.h"
#include "attention/backends/cpu/kernels/packing-inl.h"
#include "attention/backends/cpu/kernels/relative_columns-inl.h"
#include "attention/backends/cpu/kernels/softmax_rows-inl.h"
#include "attention/backends/cpu/kernels/tile_sizes.h"
#include "hwy/highway.h"

#if defined(ETC_ATTENTION_BACKENDS_CPU_KERNELS_TILE_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef ETC_ATTENTION_BACKENDS_CPU_KERNELS_TILE_INL_H_
#undef ETC_ATTENTION_BACKENDS_CPU_KERNELS_TILE_INL_H_
#else
#define ETC_ATTENTION_BACKENDS_CPU_KERNELS_TILE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace etc::kernels::HWY_NAMESPACE {

// Row of query i, at key 0 (which may lie outside of it).
template <typename T>
HWY_INLINE T* ScoreRow(const ScoreRows<T>& scores, const KeyBlock& block,
                       int64_t i) {
  return scores.rows == nullptr
             ? nullptr
             : scores.rows + i * scores.stride +
                   (block.window.is_restricted() ? block.window.before - i : 0);
}

// Returns a prefetch of the rows of queries [i, i + rows) in `scores` for the
// keys of `range`: these rows come from memory.
template <typename T>
HWY_INLINE Prefetch ScorePrefetch(const ScoreRows<T>& scores,
                                  const KeyBlock& block, int64_t i,
                                  int64_t rows, KeyRange range) {
  if (scores.rows == nullptr) {
    return {};
  }
  const T* const row = scores.rows + i * scores.stride;
  // With a window, `range` is most of the row.
  const bool has_window = block.window.is_restricted();
  const int64_t first = has_window ? 0 : range.begin;
  const int64_t columns = has_window ? scores.stride : range.size();
  Prefetch prefetch = {.data = row + first, .step = kPadding};
  if (columns == scores.stride) {
    prefetch.count = (rows * columns + kPadding - 1) / kPadding;
  } else {
    prefetch.count = (columns + kPadding - 1) / kPadding;
    prefetch.rows = rows;
    prefetch.row_stride = scores.stride;
  }
  return prefetch;
}

HWY_INLINE float ScoreScale(const AttentionHead& head) {
  return static_cast<float>(static_cast<double>(head.score_factor) /
                            std::sqrt(static_cast<double>(head.head_dim)));
}

// Scores to exponents of 2.
HWY_INLINE float ExponentFactor(const AttentionHead& head) {
  return static_cast<float>(1.4426950408889634 /
                            static_cast<double>(head.divisor));
}

// [n][sizes.head] <- the queries of a tile, times ScoreScale.
HWY_INLINE void PackQueries(const AttentionHead& head, const TileSizes& sizes,
                            int64_t begin, int64_t end, float* query) {
  PackRows(head.query + begin * head.query_stride, head.query_stride,
           end - begin, head.head_dim, sizes.head, ScoreScale(head), query);
}

// [d][sizes.relative] <- the relative table, transposed.
HWY_INLINE void PackRelativeTransposed(const AttentionHead& head,
                                       const TileSizes& sizes, float* packed) {
  const int64_t columns = RelativeColumns(head.max_distance);
  for (int64_t c = 0; c < sizes.relative; ++c) {
    const float* const row =
        c < columns ? head.relative + RelativeIdOfColumn(c, head.max_distance) *
                                          head.relative_stride
                    : nullptr;
    for (int64_t k = 0; k < head.head_dim; ++k) {
      packed[k * sizes.relative + c] = row == nullptr ? 0.0f : row[k];
    }
  }
}

// [sizes.relative] <- the relative biases, scaled, by relative column.
HWY_INLINE void PackRelativeBias(const AttentionHead& head,
                                 const TileSizes& sizes, float* packed) {
  FillRun(0.0f, sizes.relative, packed);
  for (int64_t c = 0; c < RelativeColumns(head.max_distance); ++c) {
    packed[c] = ScoreScale(head) *
                head.relative_bias[RelativeIdOfColumn(c, head.max_distance) *
                                   head.relative_bias_stride];
  }
}

// [n][sizes.relative] <- scores of the packed queries by relative column, with
// the packed table and bias.
HWY_INLINE void RelativeScores(const AttentionHead& head,
                               const TileSizes& sizes, int64_t queries,
                               const float* query, const float* table,
                               const float* bias, float* relative) {
  for (int64_t i = 0; i < queries; ++i) {
    PackRow(bias, sizes.relative, sizes.relative, 1.0f,
            relative + i * sizes.relative);
  }
  MultiplyAdd(queries, sizes.relative, {query, sizes.head, 1},
              {table, sizes.relative}, head.head_dim, relative, sizes.relative);
}

// Ranges of at most ChunkKeys(block) keys that together are some range.
struct Chunks {
  KeyRange all = {0, 0};
  int64_t size = 0;
  int64_t count = 0;

  HWY_INLINE KeyRange operator[](int64_t n) const {
    const int64_t begin = all.begin + n * size;
    return {begin, std::min(begin + size, all.end)};
  }
};

HWY_INLINE Chunks ChunksOf(const KeyBlock& block, KeyRange keys) {
  if (keys.empty()) {
    return {};
  }
  const int64_t most = ChunkKeys(block);
  const int64_t count = (keys.size() + most - 1) / most;
  const int64_t size = RoundUp((keys.size() + count - 1) / count, kPadding);
  return {keys, size, (keys.size() + size - 1) / size};
}

}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled include guard
