// Vectors of bfloat16 in memory. Compiled once for each SIMD target: see
// foreach_target.h of Highway.

#include <cstdint>

#include "base/lanes-inl.h"
#include "hwy/highway.h"

#if defined(ETC_BASE_BFLOAT16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ETC_BASE_BFLOAT16_INL_H_
#undef ETC_BASE_BFLOAT16_INL_H_
#else
#define ETC_BASE_BFLOAT16_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace etc::kernels::HWY_NAMESPACE {

// Stores the upper halves of the first `count` lanes (at most all), rounded to
// the nearest, ties to even. NaN stays NaN.
HWY_INLINE void StoreBfloat16(FloatVector vector, int64_t count, uint16_t* to) {
  const hn::RebindToUnsigned<FloatTag> uint_tag;
  const hn::RebindToSigned<FloatTag> int_tag;
  const hn::Rebind<uint16_t, FloatTag> half_tag;
  const auto bits = hn::BitCast(uint_tag, vector);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(uint_tag, 1u));
  const auto rounded = hn::ShiftRight<16>(
      hn::Add(bits, hn::Add(odd, hn::Set(uint_tag, 0x7fffu))));
  const auto chosen =
      hn::IfThenElse(hn::RebindMask(uint_tag, hn::IsNaN(vector)),
                     hn::Set(uint_tag, 0x7fc0u), rounded);
  const auto halves = hn::DemoteTo(half_tag, hn::BitCast(int_tag, chosen));
  if (count == Lanes()) {
    hn::StoreU(halves, half_tag, to);
    return;
  }
  HWY_ALIGN uint16_t lanes[hn::MaxLanes(FloatTag())];
  hn::Store(halves, half_tag, lanes);
  for (int64_t i = 0; i < count; ++i) {
    to[i] = lanes[i];
  }
}

// The first `count` lanes (at most all), as floats; zeros behind.
HWY_INLINE FloatVector LoadBfloat16(const uint16_t* from, int64_t count) {
  const hn::RebindToUnsigned<FloatTag> uint_tag;
  const hn::Rebind<uint16_t, FloatTag> half_tag;
  const auto floats = [&](auto halves) HWY_ATTR {
    return hn::BitCast(FloatTag(),
                       hn::ShiftLeft<16>(hn::PromoteTo(uint_tag, halves)));
  };
  if (count == Lanes()) {
    return floats(hn::LoadU(half_tag, from));
  }
  HWY_ALIGN uint16_t lanes[hn::MaxLanes(FloatTag())] = {};
  for (int64_t i = 0; i < count; ++i) {
    lanes[i] = from[i];
  }
  return floats(hn::Load(half_tag, lanes));
}

}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled include guard
