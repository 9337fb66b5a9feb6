// The matrix product that all others are made of.
// Compiled once for each SIMD target: see foreach_target.h of Highway.

#include <cstdint>

#include "attention/backends/cpu/kernels/tile_sizes.h"
#include "base/lanes-inl.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

#if defined(ETC_ATTENTION_BACKENDS_CPU_KERNELS_MATRIX_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef ETC_ATTENTION_BACKENDS_CPU_KERNELS_MATRIX_INL_H_
#undef ETC_ATTENTION_BACKENDS_CPU_KERNELS_MATRIX_INL_H_
#else
#define ETC_ATTENTION_BACKENDS_CPU_KERNELS_MATRIX_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace etc::kernels::HWY_NAMESPACE {

// Rows and vectors of accumulators that the registers hold: 6 x 4 of 32
// registers, 6 x 2 of 16.
inline constexpr int kBlockRows = kFloatGroupRows;
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
inline constexpr int kBlockVectors = 4;
#else
inline constexpr int kBlockVectors = 2;
#endif

// A matrix to be read element by element: (r, k) is at data[r * row_stride +
// k * depth_stride].
struct Factor {
  const float* data;
  int64_t row_stride;
  int64_t depth_stride;
};

// Rows of vectors.
struct Panel {
  const float* data;
  int64_t stride;
};

// Memory to prefetch while a product is computed, so that it is there when it
// is used: `rows` of `count` addresses that are `step` floats apart, the rows
// `row_stride`; one address with each step of the product's depth, and one row,
// or the rest of one, with each block of its columns. (All at once they would
// delay the product, since the number of requests in flight is limited.)
struct Prefetch {
  const float* data = nullptr;
  int64_t step = 0;
  int64_t count = 0;
  int64_t rows = 1;
  int64_t row_stride = 0;

  // Drops the part that a block has prefetched.
  HWY_INLINE void Advance(int64_t depth) {
    if (rows > 1) {
      data += row_stride;
      --rows;
    } else {
      const int64_t done = HWY_MIN(depth, count);
      data += done * step;
      count -= done;
    }
  }
};

// c[r][v] (kAdd: +)= sum over k < depth of a(r, k) * b[k][v], for kRows rows
// and kVectors vectors. Each sum is taken in the order of k.
template <bool kAdd, int kRows, int kVectors>
HWY_NOINLINE void MultiplyBlock(Factor a, Panel b, int64_t depth,
                                const Prefetch& prefetch, float* HWY_RESTRICT c,
                                int64_t c_stride) {
  const FloatTag tag;
  const int64_t lanes = Lanes();
  FloatVector sums[kRows][kVectors];
  HWY_UNROLL(8)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) {
      sums[r][v] =
          kAdd ? hn::LoadU(tag, c + r * c_stride + v * lanes) : hn::Zero(tag);
    }
  }
  const float* HWY_RESTRICT a_data = a.data;
  const float* HWY_RESTRICT b_data = b.data;
  const auto add_product = [&]() HWY_ATTR {
    FloatVector row[kVectors];
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) {
      row[v] = hn::LoadU(tag, b_data + v * lanes);
    }
    HWY_UNROLL(8)
    for (int r = 0; r < kRows; ++r) {
      const FloatVector factor = hn::Set(tag, a_data[r * a.row_stride]);
      HWY_UNROLL(8)
      for (int v = 0; v < kVectors; ++v) {
        sums[r][v] = hn::MulAdd(factor, row[v], sums[r][v]);
      }
    }
    a_data += a.depth_stride;
    b_data += b.stride;
  };
  const float* next = prefetch.data;
  const int64_t fetched = HWY_MIN(prefetch.count, depth);
  for (int64_t k = 0; k < fetched; ++k) {
    hwy::Prefetch(next);
    next += prefetch.step;
    add_product();
  }
  for (int64_t k = fetched; k < depth; ++k) {
    add_product();
  }
  HWY_UNROLL(8)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) {
      hn::StoreU(sums[r][v], tag, c + r * c_stride + v * lanes);
    }
  }
}

// MultiplyBlock for 1 to kBlockRows rows.
using BlockProduct = void (*)(Factor, Panel, int64_t, const Prefetch&,
                              float* HWY_RESTRICT, int64_t);
template <bool kAdd, int kVectors>
inline constexpr BlockProduct kBlockProducts[kBlockRows] = {
    &MultiplyBlock<kAdd, 1, kVectors>, &MultiplyBlock<kAdd, 2, kVectors>,
    &MultiplyBlock<kAdd, 3, kVectors>, &MultiplyBlock<kAdd, 4, kVectors>,
    &MultiplyBlock<kAdd, 5, kVectors>, &MultiplyBlock<kAdd, 6, kVectors>};

// c [rows][columns] (kAdd: +)= a [rows][depth] * b [depth][columns]. Up to
// kBlockRows rows; columns up to the next multiple of the vector's lanes are
// read and written.
template <bool kAdd>
HWY_NOINLINE void MultiplyRowGroup(int64_t rows, int64_t columns, Factor a,
                                   Panel b, int64_t depth, float* c,
                                   int64_t c_stride, Prefetch prefetch = {}) {
  const int64_t lanes = Lanes();
  int64_t vectors = (columns + lanes - 1) / lanes;
  while (vectors > 0) {
    const BlockProduct* of_rows = kBlockProducts<kAdd, 1>;
    if (vectors >= kBlockVectors) {
      of_rows = kBlockProducts<kAdd, kBlockVectors>;
    } else if (kBlockVectors > 2 && vectors == 3) {
      of_rows = kBlockProducts<kAdd, 3>;
    } else if (kBlockVectors > 2 && vectors == 2) {
      of_rows = kBlockProducts<kAdd, 2>;
    }
    of_rows[rows - 1](a, b, depth, prefetch, c, c_stride);
    prefetch.Advance(depth);
    const int64_t done = HWY_MIN(vectors, int64_t{kBlockVectors});
    vectors -= done;
    b.data += done * lanes;
    c += done * lanes;
  }
}

// c += a * b, for any number of rows.
HWY_INLINE void MultiplyAdd(int64_t rows, int64_t columns, Factor a, Panel b,
                            int64_t depth, float* c, int64_t c_stride) {
  for (int64_t r = 0; r < rows; r += kBlockRows) {
    MultiplyRowGroup</*kAdd=*/true>(
        HWY_MIN(rows - r, int64_t{kBlockRows}), columns,
        {a.data + r * a.row_stride, a.row_stride, a.depth_stride}, b, depth,
        c + r * c_stride, c_stride);
  }
}

}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled include guard
