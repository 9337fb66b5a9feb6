// Copies of rows, as they are or transposed, as products read them. Compiled
// once for each SIMD target: see foreach_target.h of Highway.

#include <cstddef>
#include <cstdint>

#include "base/lanes-inl.h"
#include "hwy/highway.h"

#if defined(ETC_ATTENTION_BACKENDS_CPU_KERNELS_PACKING_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef ETC_ATTENTION_BACKENDS_CPU_KERNELS_PACKING_INL_H_
#undef ETC_ATTENTION_BACKENDS_CPU_KERNELS_PACKING_INL_H_
#else
#define ETC_ATTENTION_BACKENDS_CPU_KERNELS_PACKING_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace etc::kernels::HWY_NAMESPACE {

// to[i] = factor * from[i] for i < count, then zeros up to `padded`.
HWY_INLINE void PackRow(const float* from, int64_t count, int64_t padded,
                        float factor, float* HWY_RESTRICT to) {
  const FloatTag tag;
  const int64_t lanes = Lanes();
  const FloatVector scale = hn::Set(tag, factor);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(hn::Mul(scale, hn::LoadU(tag, from + i)), tag, to + i);
  }
  if (i < count) {
    const FloatVector tail =
        hn::Mul(scale, LanesBetween(0, count - i).Load(from + i));
    LanesBetween(0, padded - i).Store(tail, to + i);
    i = HWY_MIN(padded, i + lanes);
  }
  for (; i < padded; ++i) {
    to[i] = 0.0f;
  }
}

// to [rows][padded] = factor * from [rows][columns], zeros behind.
HWY_NOINLINE inline void PackRows(const float* from, int64_t from_stride,
                                  int64_t rows, int64_t columns, int64_t padded,
                                  float factor, float* to) {
  for (int64_t r = 0; r < rows; ++r) {
    PackRow(from + r * from_stride, columns, padded, factor, to + r * padded);
  }
}

#if HWY_TARGET != HWY_SCALAR
// Elements 0 to 3 of rows 0, 4, 8, ... one behind the other.
template <size_t kLanes>
HWY_INLINE auto LoadEveryFourthRow(const float* from, int64_t stride) {
  const hn::FixedTag<float, kLanes> tag;
  if constexpr (kLanes == 4) {
    return hn::LoadU(tag, from);
  } else {
    return hn::Combine(
        tag,
        LoadEveryFourthRow<kLanes / 2>(
            from + static_cast<int64_t>(kLanes / 2) * stride, stride),
        LoadEveryFourthRow<kLanes / 2>(from, stride));
  }
}
#endif

// Transposes `kLanes` rows of 4.
template <size_t kLanes>
HWY_INLINE void TransposeFour(const float* from, int64_t from_stride, float* to,
                              int64_t to_stride) {
#if HWY_TARGET == HWY_SCALAR
  for (int64_t r = 0; r < static_cast<int64_t>(kLanes); ++r) {
    for (int64_t c = 0; c < 4; ++c) {
      to[c * to_stride + r] = from[r * from_stride + c];
    }
  }
#else
  const hn::FixedTag<float, kLanes> tag;
  const auto a = LoadEveryFourthRow<kLanes>(from, from_stride);
  const auto b = LoadEveryFourthRow<kLanes>(from + from_stride, from_stride);
  const auto c =
      LoadEveryFourthRow<kLanes>(from + 2 * from_stride, from_stride);
  const auto d =
      LoadEveryFourthRow<kLanes>(from + 3 * from_stride, from_stride);
  const auto ac_low = hn::InterleaveLower(tag, a, c);   // a0 c0 a1 c1
  const auto ac_high = hn::InterleaveUpper(tag, a, c);  // a2 c2 a3 c3
  const auto bd_low = hn::InterleaveLower(tag, b, d);
  const auto bd_high = hn::InterleaveUpper(tag, b, d);
  hn::StoreU(hn::InterleaveLower(tag, ac_low, bd_low), tag, to);
  hn::StoreU(hn::InterleaveUpper(tag, ac_low, bd_low), tag, to + to_stride);
  hn::StoreU(hn::InterleaveLower(tag, ac_high, bd_high), tag,
             to + 2 * to_stride);
  hn::StoreU(hn::InterleaveUpper(tag, ac_high, bd_high), tag,
             to + 3 * to_stride);
#endif
}

// to[c][r] = from[r][c] for `kRows` rows.
template <int64_t kRows>
HWY_INLINE void TransposeRows(const float* from, int64_t from_stride,
                              int64_t columns, float* HWY_RESTRICT to,
                              int64_t to_stride) {
  int64_t c = 0;
  for (; c + 4 <= columns; c += 4) {
    TransposeFour<static_cast<size_t>(kRows)>(from + c, from_stride,
                                              to + c * to_stride, to_stride);
  }
  for (; c < columns; ++c) {
    for (int64_t r = 0; r < kRows; ++r) {
      to[c * to_stride + r] = from[r * from_stride + c];
    }
  }
}

// to[c][r] = from[r][c] for r < rows, c < columns.
HWY_NOINLINE inline void PackTransposed(const float* from, int64_t from_stride,
                                        int64_t rows, int64_t columns,
                                        float* HWY_RESTRICT to,
                                        int64_t to_stride) {
  // Whole vectors, then the remaining rows four by four.
  constexpr int64_t kWhole = HWY_MAX(4, HWY_MIN(16, HWY_MAX_BYTES / 4));
  int64_t r = 0;
  for (; r + kWhole <= rows; r += kWhole) {
    TransposeRows<kWhole>(from + r * from_stride, from_stride, columns, to + r,
                          to_stride);
  }
  for (; r + 4 <= rows; r += 4) {
    TransposeRows<4>(from + r * from_stride, from_stride, columns, to + r,
                     to_stride);
  }
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t i = r; i < rows; ++i) {
      to[c * to_stride + i] = from[i * from_stride + c];
    }
  }
}

}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled include guard
