// Zeros for keys that a query does not see. Compiled once for each SIMD target:
// see foreach_target.h of Highway.

#include <cstdint>

#include "attention/backends/cpu/kernels/attention_tile.h"
#include "attention/backends/cpu/kernels/key_runs-inl.h"
#include "attention/backends/cpu/kernels/softmax_rows-inl.h"
#include "attention/backends/cpu/kernels/tile-inl.h"
#include "attention/backends/cpu/kernels/tile_sizes.h"
#include "hwy/highway.h"

#if defined(ETC_ATTENTION_BACKENDS_CPU_KERNELS_INVISIBLE_KEYS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef ETC_ATTENTION_BACKENDS_CPU_KERNELS_INVISIBLE_KEYS_INL_H_
#undef ETC_ATTENTION_BACKENDS_CPU_KERNELS_INVISIBLE_KEYS_INL_H_
#else
#define ETC_ATTENTION_BACKENDS_CPU_KERNELS_INVISIBLE_KEYS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace etc::kernels::HWY_NAMESPACE {

// Zeros wherever query i does not see a key of `range`; `row` is at key 0.
HWY_INLINE void ZeroInvisible(const KeyBlock& block, int64_t i, KeyRange range,
                              float* row) {
  const auto fill = [&](int64_t begin, int64_t end)
                        HWY_ATTR { FillRun(0.0f, end - begin, row + begin); };
  if (range.empty()) {
    return;
  }
  const KeyRange window = Intersect(range, Window(block, i));
  if (window.empty()) {
    return fill(range.begin, range.end);
  }
  if (range.begin < window.begin) {
    fill(range.begin, window.begin);
  }
  SplitByRuns(
      block.visible, i, window, [](int64_t, int64_t) {}, fill);
  if (window.end < range.end) {
    fill(window.end, range.end);
  }
}

// Zeros in a row of the keys `range`, whose first element is at a vector's
// border: in the vectors before and behind those that hold the keys `seen`.
HWY_INLINE void ClearAround(KeyRange seen, KeyRange range, float* row) {
  if (seen.empty()) {
    return FillRun(0.0f, range.size(), row);
  }
  const int64_t lanes = Lanes();
  const int64_t before = (seen.begin - range.begin) / lanes * lanes;
  const int64_t behind = RoundUp(seen.end - range.begin, lanes);
  FillRun(0.0f, before, row);
  FillRun(0.0f, range.size() - behind, row + behind);
}

// Like ZeroInvisible, for a row of carried scores, whose window may extend
// beyond the keys.
HWY_INLINE void ZeroInvisibleScores(const KeyBlock& block, int64_t i,
                                    KeyRange limit, float* row) {
  if (!block.window.is_restricted()) {
    return ZeroInvisible(block, i, limit, row);
  }
  const KeyRange window = Window(block, i);
  const KeyRange keys = Intersect(window, {0, block.keys});
  FillRun(0.0f, keys.begin - window.begin, row + window.begin);
  ZeroInvisible(block, i, keys, row);
  FillRun(0.0f, window.end - keys.end, row + keys.end);
}

// Applies ZeroInvisibleScores to the rows of queries [begin, end), unless they
// are the rows of `from`, where the zeros are already.
HWY_INLINE void ZeroInvisibleRows(const KeyBlock& block, int64_t begin,
                                  int64_t end, KeyRange limit,
                                  const ScoreRows<const float>& from,
                                  const ScoreRows<float>& to) {
  if (to.rows == nullptr || to.rows == from.rows) {
    return;
  }
  for (int64_t i = begin; i < end; ++i) {
    ZeroInvisibleScores(block, i, limit, ScoreRow(to, block, i));
  }
}

}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled include guard
