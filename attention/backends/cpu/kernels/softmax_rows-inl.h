// Runs of score rows: from products to probabilities, and back to gradients.
// Compiled once for each SIMD target: see foreach_target.h of Highway.

#include <cstdint>

#include "base/lanes-inl.h"
#include "base/random.h"
#include "hwy/highway.h"

#if defined(ETC_ATTENTION_BACKENDS_CPU_KERNELS_SOFTMAX_ROWS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef ETC_ATTENTION_BACKENDS_CPU_KERNELS_SOFTMAX_ROWS_INL_H_
#undef ETC_ATTENTION_BACKENDS_CPU_KERNELS_SOFTMAX_ROWS_INL_H_
#else
#define ETC_ATTENTION_BACKENDS_CPU_KERNELS_SOFTMAX_ROWS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace etc::kernels::HWY_NAMESPACE {

inline constexpr float kLowestExponent = -125.0f;

// 2^x for x <= 0, to 1.5 ulp; NaN for NaN. Below kLowestExponent it may stay at
// 2^kLowestExponent.
// Round to the nearest integer n, then a polynomial for 2^(x - n) on
// [-1/2, 1/2] (the minimax one that is 1 at 0, relative error 2e-9).
HWY_INLINE FloatVector Exp2(FloatVector x) {
  const FloatTag tag;
  const auto polynomial = [&](FloatVector f) HWY_ATTR {
    FloatVector p = hn::Set(tag, 1.535065026048e-4f);
    p = hn::MulAdd(p, f, hn::Set(tag, 1.339886172959519e-3f));
    p = hn::MulAdd(p, f, hn::Set(tag, 9.61845005979156e-3f));
    p = hn::MulAdd(p, f, hn::Set(tag, 5.550332610844263e-2f));
    p = hn::MulAdd(p, f, hn::Set(tag, 2.402264776692194e-1f));
    p = hn::MulAdd(p, f, hn::Set(tag, 6.931472026055704e-1f));
    return hn::MulAdd(p, f, hn::Set(tag, 1.0f));
  };
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  const FloatVector whole = hn::Round(x);
  // 0 where x is minus infinity, although `f` is NaN there.
  const FloatVector f = hn::Sub(x, whole);
  return FloatVector{_mm512_scalef_ps(polynomial(f).raw, whole.raw)};
#else
  const FloatVector lowest = hn::Set(tag, kLowestExponent);
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
  // x86's max returns its second operand if one of the two is NaN.
  x = hn::Max(lowest, x);
#else
  x = hn::IfThenElse(hn::Lt(x, lowest), lowest, x);
#endif
  // Adding 1.5 * 2^23 leaves n in the low bits of the sum.
  const FloatVector magic = hn::Set(tag, 12582912.0f);
  const FloatVector shifted = hn::Add(x, magic);
  const FloatVector f = hn::Sub(x, hn::Sub(shifted, magic));
  const hn::RebindToSigned<FloatTag> int_tag;
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(int_tag, shifted));
  return hn::BitCast(tag,
                     hn::Add(hn::BitCast(int_tag, polynomial(f)), exponent));
#endif
}

// min(x, 0); NaN for NaN.
HWY_INLINE FloatVector AtMostZero(FloatVector x) {
  const FloatVector zero = hn::Zero(FloatTag());
#if HWY_ARCH_X86
  // The minimum on x86 is its second operand if either is NaN.
  return hn::Min(zero, x);
#else
  return hn::IfThenElse(hn::Gt(x, zero), zero, x);
#endif
}

HWY_INLINE float RunSum(const float* row, int64_t count) {
  const FloatTag tag;
  FloatVector sum = hn::Zero(tag);
  ForEachVector(0, count, [&](int64_t i, auto lanes) HWY_ATTR {
    sum = hn::Add(sum, lanes.Load(row + i));
  });
  return hn::GetLane(hn::SumOfLanes(tag, sum));
}

// 0 where dropped, else `kept`, for keys `key` to `key + lanes`.
HWY_INLINE FloatVector DropoutFactors(DropoutRow row, uint32_t key,
                                      uint32_t threshold, float kept) {
  const FloatTag tag;
  const hn::RebindToUnsigned<FloatTag> uint_tag;
  const hn::RebindToSigned<FloatTag> int_tag;
  // Not Iota(uint_tag, key), which Highway may store lane by lane to load it.
  const auto keys =
      hn::Add(hn::Iota(uint_tag, uint32_t{0}), hn::Set(uint_tag, key));
  auto x = hn::Xor(keys, hn::Set(uint_tag, row.first));
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<16>(x)),
              hn::Set(uint_tag, kDropoutMultiplier1));
  x = hn::Mul(
      hn::Add(hn::Xor(x, hn::ShiftRight<15>(x)), hn::Set(uint_tag, row.second)),
      hn::Set(uint_tag, kDropoutMultiplier2));
  x = hn::Xor(x, hn::ShiftRight<16>(x));
  // Signed comparison is what all targets have: move both by 2^31.
  const auto moved =
      hn::BitCast(int_tag, hn::Xor(x, hn::Set(uint_tag, 0x80000000u)));
  const auto least =
      hn::Set(int_tag, static_cast<int32_t>(threshold ^ 0x80000000u));
  const auto dropped = hn::Lt(moved, least);
  return hn::IfThenZeroElse(hn::RebindMask(tag, dropped), hn::Set(tag, kept));
}

// to[i] = value.
HWY_INLINE void FillRun(float value, int64_t count, float* to) {
  const FloatVector vector = hn::Set(FloatTag(), value);
  ForEachVector(0, count, [&](int64_t i, auto lanes) HWY_ATTR {
    lanes.Store(vector, to + i);
  });
}

// row[i] += summand.
HWY_INLINE void AddToRun(float summand, int64_t count, float* row) {
  const FloatVector vector = hn::Set(FloatTag(), summand);
  ForEachVector(0, count, [&](int64_t i, auto lanes) HWY_ATTR {
    lanes.Store(hn::Add(vector, lanes.Load(row + i)), row + i);
  });
}

// row[i] *= factor.
HWY_INLINE void ScaleRun(float factor, int64_t count, float* row) {
  const FloatTag tag;
  for (int64_t i = 0; i < count; i += Lanes()) {
    hn::StoreU(hn::Mul(hn::Set(tag, factor), hn::LoadU(tag, row + i)), tag,
               row + i);
  }
}

}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled include guard
