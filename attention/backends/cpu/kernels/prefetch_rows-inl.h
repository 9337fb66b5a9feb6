// Prefetches rows that a tile is going to pack, during the products before.
// Compiled once for each SIMD target: see foreach_target.h of Highway.

#include <algorithm>
#include <cstdint>

#include "attention/backends/cpu/kernels/key_runs-inl.h"
#include "attention/backends/cpu/kernels/matrix-inl.h"
#include "attention/backends/cpu/kernels/tile_sizes.h"
#include "hwy/highway.h"

#if defined(ETC_ATTENTION_BACKENDS_CPU_KERNELS_PREFETCH_ROWS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef ETC_ATTENTION_BACKENDS_CPU_KERNELS_PREFETCH_ROWS_INL_H_
#undef ETC_ATTENTION_BACKENDS_CPU_KERNELS_PREFETCH_ROWS_INL_H_
#else
#define ETC_ATTENTION_BACKENDS_CPU_KERNELS_PREFETCH_ROWS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace etc::kernels::HWY_NAMESPACE {

// Each group of queries prefetches one vector of each of the next rows; the
// next group the vector after it. After the last vector come the rows behind,
// somewhat faster than they are used.
class PrefetchRows {
 public:
  // Prefetches for queries [first_query, last_query), in groups of so many
  // rows, and keys of a block before `last_key`, of which `chunks` chunks are
  // packed at a time; a group prefetches once for each of these.
  HWY_INLINE PrefetchRows(const KeyBlock& block, int64_t chunks,
                          int64_t last_key, int64_t group_rows,
                          int64_t first_query, int64_t last_query)
      : is_window_(block.window.is_restricted()),
        most_keys_(is_window_ ? 2 * kPackedKeys : chunks * ChunkKeys(block)),
        chunks_(chunks),
        group_rows_(group_rows),
        groups_((last_query - first_query + group_rows - 1) / group_rows),
        last_key_(last_key),
        last_query_(last_query) {}

  HWY_INLINE void AddByKey(const float* rows, int64_t stride, int64_t columns) {
    Add(rows, stride, columns, /*by_key=*/true);
  }
  HWY_INLINE void AddByQuery(const float* rows, int64_t stride,
                             int64_t columns) {
    Add(rows, stride, columns, /*by_key=*/false);
  }

  // Returns the next prefetch of a group; keys and queries before these are
  // packed.
  HWY_INLINE Prefetch Next(int64_t packed_keys, int64_t packed_queries) {
    if (turn_ == turns_) {
      turn_ = 0;
      const int64_t used = (turns_ + 2) * group_rows_ / chunks_;
      keys_ = Behind(
          keys_, packed_keys,
          is_window_ ? used : most_keys_ * (turns_ + 2) / (groups_ * chunks_),
          std::min(packed_keys + most_keys_, last_key_));
      queries_ = Behind(queries_, packed_queries, used, last_query_);
    }
    int64_t vector = turn_++;
    for (int64_t i = 0; i < count_; ++i) {
      const Rows& rows = rows_[i];
      if (vector < rows.vectors) {
        const KeyRange range = rows.by_key ? keys_ : queries_;
        return {
            .data = rows.data + range.begin * rows.stride + vector * kPadding,
            .step = rows.stride,
            .count = range.size()};
      }
      vector -= rows.vectors;
    }
    return {};
  }

 private:
  struct Rows {
    const float* data;
    int64_t stride;
    int64_t vectors;
    bool by_key;
  };

  HWY_INLINE void Add(const float* rows, int64_t stride, int64_t columns,
                      bool by_key) {
    const int64_t vectors = RoundUp(columns, kPadding) / kPadding;
    rows_[count_++] = {rows, stride, vectors, by_key};
    turns_ += vectors;
    turn_ = turns_;
  }

  // The next `count`, before `last`, that are neither packed nor prefetched.
  HWY_INLINE static KeyRange Behind(KeyRange asked, int64_t packed,
                                    int64_t count, int64_t last) {
    const int64_t begin = std::max(asked.end, packed);
    return {begin, std::max(begin, std::min(begin + count, last))};
  }

  static constexpr int64_t kMost = 5;

  const bool is_window_;
  const int64_t most_keys_;
  const int64_t chunks_;
  const int64_t group_rows_;
  const int64_t groups_;
  const int64_t last_key_;
  const int64_t last_query_;
  Rows rows_[kMost];
  int64_t count_ = 0;
  int64_t turns_ = 0;
  int64_t turn_ = 0;
  // Prefetched at present.
  KeyRange keys_ = {0, 0};
  KeyRange queries_ = {0, 0};
};

}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled include guard
