// Maps columns of the relative table to keys. Compiled once for each SIMD
// target: see foreach_target.h of Highway.

#include <algorithm>
#include <cstdint>

#include "attention/backends/cpu/kernels/attention_tile.h"
#include "attention/backends/cpu/kernels/key_runs-inl.h"
#include "attention/backends/cpu/kernels/softmax_rows-inl.h"
#include "hwy/highway.h"

#if defined(ETC_ATTENTION_BACKENDS_CPU_KERNELS_RELATIVE_COLUMNS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef ETC_ATTENTION_BACKENDS_CPU_KERNELS_RELATIVE_COLUMNS_INL_H_
#undef ETC_ATTENTION_BACKENDS_CPU_KERNELS_RELATIVE_COLUMNS_INL_H_
#else
#define ETC_ATTENTION_BACKENDS_CPU_KERNELS_RELATIVE_COLUMNS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace etc::kernels::HWY_NAMESPACE {

// Columns of RelativeIdOfColumn behind those of distances, which end with 2m:
// offsets from it.
enum RelativeColumn { kNotLinked = 1, kLinked = 2, kOtherSegment = 3 };

// Splits keys [begin, end) by the relative column that query i has for them:
// constant(column, begin, end) and, for keys at different distances,
// distances(column of the first, begin, end).
template <typename Constant, typename Distances>
HWY_INLINE void SplitByDistance(int64_t m, int64_t i, int64_t begin,
                                int64_t end, const Constant& constant,
                                const Distances& distances) {
  const int64_t near_begin = std::clamp(i - m, begin, end);
  const int64_t near_end = std::clamp(i + m, begin, end);
  if (begin < near_begin) {
    constant(0, begin, near_begin);
  }
  if (near_begin < near_end) {
    distances(near_begin - i + m, near_begin, near_end);
  }
  if (near_end < end) {
    constant(2 * m, near_end, end);
  }
}

template <typename Constant, typename Distances>
HWY_INLINE void SplitByRelativeColumn(const KeyBlock& block, int64_t m,
                                      int64_t i, KeyRange range,
                                      const Constant& constant,
                                      const Distances& distances) {
  const auto by_distance = [&](int64_t begin, int64_t end) HWY_ATTR {
    SplitByDistance(m, i, begin, end, constant, distances);
  };
  switch (block.rule) {
    case RelativeRule::kNone:
      return;
    case RelativeRule::kDistance:
      if (block.special.runs == nullptr) {
        return by_distance(range.begin, range.end);
      }
      return SplitByRuns(block.special, i, range, by_distance,
                         [&](int64_t begin, int64_t end) HWY_ATTR {
                           constant(2 * m + kOtherSegment, begin, end);
                         });
    case RelativeRule::kLink:
      return SplitByRuns(
          block.special, i, range,
          [&](int64_t begin, int64_t end)
              HWY_ATTR { constant(2 * m + kLinked, begin, end); },
          [&](int64_t begin, int64_t end)
              HWY_ATTR { constant(2 * m + kNotLinked, begin, end); });
  }
}

// row[j - range.begin] = the relative score of query i and key j.
HWY_INLINE void FillRelativeScores(const KeyBlock& block, int64_t m, int64_t i,
                                   KeyRange range, const float* by_column,
                                   float* row) {
  SplitByRelativeColumn(
      block, m, i, range,
      [&](int64_t column, int64_t begin, int64_t end) HWY_ATTR {
        FillRun(by_column[column], end - begin, row + begin - range.begin);
      },
      [&](int64_t column, int64_t begin, int64_t end) HWY_ATTR {
        for (int64_t j = begin; j < end; ++j) {
          row[j - range.begin] = by_column[column + j - begin];
        }
      });
}

// The transpose: by_column[c] += sum of row over the keys of column c.
HWY_INLINE void AddRelativeGradient(const KeyBlock& block, int64_t m, int64_t i,
                                    KeyRange range, const float* row,
                                    float* by_column) {
  SplitByRelativeColumn(
      block, m, i, range,
      [&](int64_t column, int64_t begin, int64_t end) HWY_ATTR {
        by_column[column] += RunSum(row + begin - range.begin, end - begin);
      },
      [&](int64_t column, int64_t begin, int64_t end) HWY_ATTR {
        for (int64_t j = begin; j < end; ++j) {
          by_column[column + j - begin] += row[j - range.begin];
        }
      });
}

}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled include guard
