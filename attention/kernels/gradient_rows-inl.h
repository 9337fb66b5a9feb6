// Sums into gradients. Compiled once for each SIMD target: see foreach_target.h
// of Highway.

#include <cstdint>

#include "attention/kernels/attention_tile.h"
#include "attention/kernels/key_runs-inl.h"
#include "hwy/highway.h"

#if defined(ETC_ATTENTION_KERNELS_GRADIENT_ROWS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef ETC_ATTENTION_KERNELS_GRADIENT_ROWS_INL_H_
#undef ETC_ATTENTION_KERNELS_GRADIENT_ROWS_INL_H_
#else
#define ETC_ATTENTION_KERNELS_GRADIENT_ROWS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace etc::kernels::HWY_NAMESPACE {

HWY_INLINE float DotProduct(const float* a, const float* b, int64_t count) {
  const FloatTag tag;
  FloatVector sum = hn::Zero(tag);
  int64_t i = 0;
  for (; i + Lanes() <= count; i += Lanes()) {
    sum = hn::MulAdd(hn::LoadU(tag, a + i), hn::LoadU(tag, b + i), sum);
  }
  if (i < count) {
    sum = hn::MulAdd(LoadLanes(a + i, 0, count - i),
                     LoadLanes(b + i, 0, count - i), sum);
  }
  return hn::GetLane(hn::SumOfLanes(tag, sum));
}

// to[i] += factor * from[i].
HWY_INLINE void AddRow(float factor, const float* from, int64_t count,
                       float* to) {
  const FloatTag tag;
  const FloatVector a = hn::Set(tag, factor);
  int64_t i = 0;
  for (; i + Lanes() <= count; i += Lanes()) {
    hn::StoreU(hn::MulAdd(a, hn::LoadU(tag, from + i), hn::LoadU(tag, to + i)),
               tag, to + i);
  }
  if (i < count) {
    const int64_t rest = count - i;
    StoreLanes(
        hn::MulAdd(a, LoadLanes(from + i, 0, rest), LoadLanes(to + i, 0, rest)),
        0, rest, to + i);
  }
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
