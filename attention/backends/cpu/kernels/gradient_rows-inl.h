// Sums into gradients. Compiled once for each SIMD target: see foreach_target.h
// of Highway.

#include <cstdint>

#include "attention/backends/cpu/kernels/attention_tile.h"
#include "attention/backends/cpu/kernels/key_runs-inl.h"
#include "hwy/highway.h"

#if defined(ETC_ATTENTION_BACKENDS_CPU_KERNELS_GRADIENT_ROWS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef ETC_ATTENTION_BACKENDS_CPU_KERNELS_GRADIENT_ROWS_INL_H_
#undef ETC_ATTENTION_BACKENDS_CPU_KERNELS_GRADIENT_ROWS_INL_H_
#else
#define ETC_ATTENTION_BACKENDS_CPU_KERNELS_GRADIENT_ROWS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace etc::kernels::HWY_NAMESPACE {

HWY_INLINE float DotProduct(const float* a, const float* b, int64_t count) {
  const FloatTag tag;
  FloatVector sum = hn::Zero(tag);
  ForEachVector(0, count, [&](int64_t i, auto lanes) HWY_ATTR {
    sum = hn::MulAdd(lanes.Load(a + i), lanes.Load(b + i), sum);
  });
  return hn::GetLane(hn::SumOfLanes(tag, sum));
}

// to[i] += factor * from[i].
HWY_INLINE void AddRow(float factor, const float* from, int64_t count,
                       float* to) {
  const FloatVector a = hn::Set(FloatTag(), factor);
  ForEachVector(0, count, [&](int64_t i, auto lanes) HWY_ATTR {
    lanes.Store(hn::MulAdd(a, lanes.Load(from + i), lanes.Load(to + i)),
                to + i);
  });
}

// Adds factor * rows [range.size()][stride], which begin at row range.begin.
HWY_NOINLINE inline void AddToPieces(const GradientPieces& to, KeyRange range,
                                     float factor, const float* rows,
                                     int64_t stride, int64_t columns) {
  for (const GradientRows& piece : to.pieces) {
    const KeyRange common = Intersect(range, {piece.begin, piece.end});
    for (int64_t r = common.begin; r < common.end; ++r) {
      AddRow(factor, rows + (r - range.begin) * stride, columns,
             piece.rows + (r - piece.begin) * piece.stride);
    }
  }
}

}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled include guard
