// What the forward and backward passes of a tile share: sizes, the packed
// queries and relative table, chunks of keys. Compiled once for each SIMD
// target: see foreach_target.h of Highway.

#include <cmath>
#include <cstdint>

#include "attention/kernels/attention_tile.h"
#include "attention/kernels/key_runs-inl.h"
#include "attention/kernels/tile_sizes.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

#if defined(ETC_ATTENTION_KERNELS_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ETC_ATTENTION_KERNELS_TILE_INL_H_
#undef ETC_ATTENTION_KERNELS_TILE_INL_H_
#else
#define ETC_ATTENTION_KERNELS_TILE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace etc::kernels::HWY_NAMESPACE {

// Row of query i, at key 0 (which may lie outside of it).
template <typename T>
HWY_INLINE T* ScoreRow(const ScoreRows<T>& scores, const KeyBlock& block,
                       int64_t i) {
  return scores.rows == nullptr ? nullptr
                                : scores.rows + i * scores.stride +
                                      (block.radius < 0 ? 0 : block.radius - i);
}

// Asks for what query i has in `scores` for the keys of `range`, ahead of use:
// these rows come from memory, and the product before their use hides that.
template <typename T>
HWY_INLINE void PrefetchScores(const ScoreRows<T>& scores,
                               const KeyBlock& block, int64_t i,
                               KeyRange range) {
  const T* const row = ScoreRow(scores, block, i);
  if (row == nullptr) {
    return;
  }
  const KeyRange keys = Intersect(range, Window(block, i));
  for (int64_t key = keys.begin; key < keys.end; key += kPadding) {
    hwy::Prefetch(row + key);
  }
}

HWY_INLINE float ScoreScale(const AttentionHead& head) {
  return static_cast<float>(1.0 /
                            std::sqrt(static_cast<double>(head.head_dim)));
}

// Scores to exponents of 2.
HWY_INLINE float ExponentFactor(const AttentionHead& head) {
  return static_cast<float>(1.4426950408889634 /
                            static_cast<double>(head.divisor));
}

// [n][sizes.head] <- the queries of a tile, times 1 / sqrt(d).
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

// [n][sizes.relative] <- scores of the packed queries by relative column.
// `packed_table` is scratch for PackRelativeTransposed.
HWY_NOINLINE inline void RelativeScores(const AttentionHead& head,
                                        const TileSizes& sizes, int64_t queries,
                                        const float* query, float* packed_table,
                                        float* relative) {
  if (sizes.relative == 0) {
    return;
  }
  PackRelativeTransposed(head, sizes, packed_table);
  FillRun(0.0f, sizes.relative, relative);
  for (int64_t c = 0; c < RelativeColumns(head.max_distance); ++c) {
    relative[c] = ScoreScale(head) *
                  head.relative_bias[RelativeIdOfColumn(c, head.max_distance) *
                                     head.relative_bias_stride];
  }
  for (int64_t i = 1; i < queries; ++i) {
    PackRow(relative, sizes.relative, sizes.relative, 1.0f,
            relative + i * sizes.relative);
  }
  MultiplyAdd(queries, sizes.relative, {query, sizes.head, 1},
              {packed_table, sizes.relative}, head.head_dim, relative,
              sizes.relative);
}

// Calls function(chunk) for ranges of at most kChunkKeys keys that together
// hold all that queries [begin, end) see within `limit`.
template <typename Function>
HWY_INLINE void ForEachChunk(const KeyBlock& block, int64_t begin, int64_t end,
                             KeyRange limit, const Function& function) {
  const KeyRange hull = RowsHull(block, begin, end, limit);
  if (hull.empty()) {
    return;
  }
  const int64_t chunks = (hull.size() + kChunkKeys - 1) / kChunkKeys;
  const int64_t size = RoundUp((hull.size() + chunks - 1) / chunks, kPadding);
  for (int64_t first = hull.begin; first < hull.end; first += size) {
    function(KeyRange{first, std::min(first + size, hull.end)});
  }
}

}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled include guard
