// Operands of rounded products (rounded_products.h), packed. Compiled once for
// each SIMD target: see foreach_target.h of Highway.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "attention/backends/cpu/kernels/attention_tile.h"
#include "attention/backends/cpu/kernels/gradient_rows-inl.h"
#include "attention/backends/cpu/kernels/packing-inl.h"
#include "attention/backends/cpu/kernels/rounded_products.h"
#include "attention/backends/cpu/kernels/tile-inl.h"
#include "attention/backends/cpu/kernels/tile_sizes.h"
#include "hwy/highway.h"

#if defined(ETC_ATTENTION_BACKENDS_CPU_KERNELS_ROUNDED_OPERANDS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef ETC_ATTENTION_BACKENDS_CPU_KERNELS_ROUNDED_OPERANDS_INL_H_
#undef ETC_ATTENTION_BACKENDS_CPU_KERNELS_ROUNDED_OPERANDS_INL_H_
#else
#define ETC_ATTENTION_BACKENDS_CPU_KERNELS_ROUNDED_OPERANDS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace etc::kernels::HWY_NAMESPACE {

// ScoreScale as a power of 2, by which rounded queries are multiplied without
// being rounded once more, and the rest, by which their products are.
struct SplitScale {
  HWY_INLINE explicit SplitScale(const AttentionHead& head) {
    int exponent = 0;
    rest = std::frexp(ScoreScale(head), &exponent);
    power = std::ldexp(1.0f, exponent);
    if (rest == 0.5f) {
      rest = 1.0f;
      power *= 0.5f;
    }
  }

  float power;
  float rest;
};

// to [rows][padded] = factor * from [rows][columns], zeros behind.
HWY_INLINE void RoundRows(const RoundedProducts& products, const float* from,
                          int64_t from_stride, int64_t rows, int64_t columns,
                          int64_t padded, float factor, uint16_t* to) {
  for (int64_t r = 0; r < rows; ++r) {
    products.round_row(from + r * from_stride, columns, padded, factor,
                       to + r * padded);
  }
}

// Returns the dot product of a row that RoundRows wrote, of which whole vectors
// are read, with one of `count` floats.
HWY_INLINE float RoundedDotProduct(const uint16_t* row, const float* floats,
                                   int64_t count) {
  const FloatTag tag;
  const hn::Rebind<uint16_t, FloatTag> halves;
  const hn::RebindToUnsigned<FloatTag> words;
  FloatVector sum = hn::Zero(tag);
  ForEachVector(0, count, [&](int64_t i, auto lanes) HWY_ATTR {
    const auto word = hn::PromoteTo(words, hn::LoadU(halves, row + i));
    sum = hn::MulAdd(hn::BitCast(tag, hn::ShiftLeft<16>(word)),
                     lanes.Load(floats + i), sum);
  });
  return hn::GetLane(hn::SumOfLanes(tag, sum));
}

// Transposes words, each of a pair of bfloat16. They are moved as floats, with
// which nothing is computed.
HWY_INLINE void TransposeWords(const void* from, int64_t from_stride,
                               int64_t rows, int64_t columns, void* to,
                               int64_t to_stride) {
  PackTransposed(static_cast<const float*>(from), from_stride, rows, columns,
                 static_cast<float*>(to), to_stride);
}

// The rows that may be transposed at a time.
inline constexpr int64_t kTransposedRows = 64;
static_assert(kTransposedRows >= kPackedKeys);

inline int64_t RoundedRowsSize(const TileSizes& sizes) {
  return kTransposedRows * std::max(sizes.head_depth, sizes.value_depth);
}

// Rows of `from`, at most kTransposedRows, as columns: pairs of the transposed
// matrix [depth][rows], with zeros in rows from `columns` on.
HWY_INLINE void PackRoundedTransposed(const RoundedProducts& products,
                                      const float* from, int64_t from_stride,
                                      int64_t rows, int64_t columns,
                                      int64_t depth, uint16_t* scratch,
                                      uint32_t* to, int64_t to_stride) {
  RoundRows(products, from, from_stride, rows, columns, depth, 1.0f, scratch);
  TransposeWords(scratch, depth / 2, rows, depth / 2, to, to_stride);
}

// Pairs of from [rows][columns], with zeros in columns up to `padded`, and if
// these rows are the last, in so many rows behind that any product of the rows
// before reads nothing else.
HWY_INLINE void PackRoundedPairs(const RoundedProducts& products,
                                 const float* from, int64_t from_stride,
                                 int64_t rows, int64_t columns, int64_t padded,
                                 bool is_last, uint32_t* to) {
  const int64_t all = is_last ? rows + kRoundedDepth : rows;
  for (int64_t r = 0; r < all; r += 2) {
    const float* const even = r < rows ? from + r * from_stride : nullptr;
    const float* const odd =
        r + 1 < rows ? from + (r + 1) * from_stride : nullptr;
    products.round_pairs(even, odd, columns, padded, 1.0f, to + r / 2 * padded);
  }
}

// Pairs of the relative table, transposed: [head_depth][relative]; `scratch` as
// RoundedRowsSize has it.
HWY_INLINE void PackRoundedTable(const AttentionHead& head,
                                 const TileSizes& sizes, uint16_t* scratch,
                                 uint32_t* packed) {
  const int64_t columns = RelativeColumns(head.max_distance);
  for (int64_t first = 0; first < sizes.relative; first += kTransposedRows) {
    const int64_t rows = std::min(kTransposedRows, sizes.relative - first);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t c = first + r;
      const bool is_column = c < columns;
      const int64_t id =
          is_column ? RelativeIdOfColumn(c, head.max_distance) : 0;
      head.rounded->round_row(head.relative + id * head.relative_stride,
                              is_column ? head.head_dim : 0, sizes.head_depth,
                              1.0f, scratch + r * sizes.head_depth);
    }
    TransposeWords(scratch, sizes.head_depth / 2, rows, sizes.head_depth / 2,
                   packed + first, sizes.relative);
  }
}

// RelativeScores of rounded queries [n][head_depth] and table, whose products
// are multiplied by `rest`. Rows up to the next multiple of kRoundedRows are
// read, and written.
HWY_INLINE void RoundedRelativeScores(const RoundedProducts& products,
                                      const TileSizes& sizes, int64_t queries,
                                      const uint16_t* query,
                                      const uint32_t* table, float rest,
                                      const float* bias, float* relative) {
  for (int64_t i = 0; i < queries; i += kRoundedRows) {
    float* const rows = relative + i * sizes.relative;
    products.multiply({.columns = sizes.relative,
                       .depth = sizes.head_depth,
                       .a = query + i * sizes.head_depth,
                       .a_stride = sizes.head_depth,
                       .b = table,
                       .b_stride = sizes.relative,
                       .c = rows,
                       .c_stride = sizes.relative,
                       .adds = false});
    for (int64_t r = 0; r < kRoundedRows; ++r) {
      float* const row = rows + r * sizes.relative;
      ScaleRun(rest, sizes.relative, row);
      AddRow(1.0f, bias, sizes.relative, row);
    }
  }
}

}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled include guard
