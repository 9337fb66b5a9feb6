// The products of a forward pass, in float32 or of operands rounded to
// bfloat16, and how they want their operands packed. Compiled once for each
// SIMD target: see foreach_target.h of Highway.

#include <algorithm>
#include <cstdint>

#include "attention/backends/cpu/kernels/attention_tile.h"
#include "attention/backends/cpu/kernels/matrix-inl.h"
#include "attention/backends/cpu/kernels/packing-inl.h"
#include "attention/backends/cpu/kernels/rounded_operands-inl.h"
#include "attention/backends/cpu/kernels/rounded_products.h"
#include "attention/backends/cpu/kernels/tile-inl.h"
#include "attention/backends/cpu/kernels/tile_sizes.h"
#include "hwy/highway.h"

#if defined(ETC_ATTENTION_BACKENDS_CPU_KERNELS_FORWARD_PRODUCTS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef ETC_ATTENTION_BACKENDS_CPU_KERNELS_FORWARD_PRODUCTS_INL_H_
#undef ETC_ATTENTION_BACKENDS_CPU_KERNELS_FORWARD_PRODUCTS_INL_H_
#else
#define ETC_ATTENTION_BACKENDS_CPU_KERNELS_FORWARD_PRODUCTS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace etc::kernels::HWY_NAMESPACE {

// Both classes have the same members. Keys are packed into two panels, numbered
// 0 and 1; `at` numbers the keys of a panel, of which there are at most
// TileSizes::keys, and `n` the queries that are packed at a time.
class FloatForwardProducts {
 public:
  // Queries whose scores are computed together, and the multiple of a panel's
  // keys at which their products begin.
  static constexpr int64_t kGroupRows = kBlockRows;
  static constexpr int64_t kKeyMultiple = 1;

  HWY_INLINE FloatForwardProducts(const AttentionHead& head,
                                  const TileSizes& sizes, float* workspace)
      : head_(head), sizes_(sizes), work_(head, sizes, workspace) {}

  HWY_INLINE void Begin() {
    if (sizes_.relative > 0) {
      PackRelativeTransposed(head_, sizes_, work_.relative_table);
      PackRelativeBias(head_, sizes_, work_.relative_bias);
    }
  }
  HWY_INLINE void End() {}

  // Packs queries [first, first + queries) as the n-th and following, and
  // computes their relative scores.
  HWY_INLINE void PackQueries(int64_t first, int64_t queries, int64_t n,
                              float* relative) {
    float* const packed = work_.query + n * sizes_.head;
    kernels::HWY_NAMESPACE::PackQueries(head_, sizes_, first, first + queries,
                                        packed);
    if (sizes_.relative > 0) {
      RelativeScores(head_, sizes_, queries, packed, work_.relative_table,
                     work_.relative_bias, relative);
    }
  }

  // Packs keys [first, first + keys) of a block, at most kPackedKeys, and their
  // values if there will be a context. Later panels have other strides.
  HWY_INLINE void PackKeys(const KeyBlock& block, int64_t first, int64_t keys,
                           int64_t panel, int64_t at, int64_t panel_keys,
                           bool with_values) {
    PackTransposed(block.key + first * block.key_stride, block.key_stride, keys,
                   head_.head_dim, work_.keys[panel] + at,
                   KeyStride(panel_keys));
    if (with_values) {
      PackRows(block.value + first * block.value_stride, block.value_stride,
               keys, head_.value_dim, sizes_.value, 1.0f,
               work_.values[panel] + at * sizes_.value);
    }
  }
  // The keys of a panel of `panel_keys` that must be packed for products with
  // keys before `end`.
  HWY_INLINE int64_t KeysNeeded(int64_t end, int64_t) const { return end; }

  // scores [rows][score_stride] = queries . keys [at, at + keys)
  HWY_INLINE void MultiplyKeys(int64_t n, int64_t rows, int64_t panel,
                               int64_t at, int64_t keys, int64_t panel_keys,
                               const Prefetch& prefetch, float* scores) {
    MultiplyRowGroup</*kAdd=*/false>(
        rows, keys, {work_.query + n * sizes_.head, sizes_.head, 1},
        {work_.keys[panel] + at, KeyStride(panel_keys)}, head_.head_dim, scores,
        sizes_.score_stride, prefetch);
  }

  // context [rows][value] (adds: +)= weights [rows][score_stride] . values of
  // keys [at, at + keys)
  HWY_INLINE void MultiplyValues(const float* weights, int64_t rows,
                                 int64_t panel, int64_t at, int64_t keys,
                                 bool adds, const Prefetch& prefetch,
                                 float* context) {
    const auto multiply = adds ? &MultiplyRowGroup</*kAdd=*/true>
                               : &MultiplyRowGroup</*kAdd=*/false>;
    multiply(rows, sizes_.value, {weights, sizes_.score_stride, 1},
             {work_.values[panel] + at * sizes_.value, sizes_.value}, keys,
             context, sizes_.value, prefetch);
  }

  static int64_t WorkspaceSize(const AttentionHead& head,
                               const TileSizes& sizes) {
    return Workspace(head, sizes, nullptr).total;
  }

 private:
  struct Workspace {
    Workspace(const AttentionHead& head, const TileSizes& sizes, float* begin) {
      WorkspaceCursor cursor(begin);
      query = cursor.Take(kTileQueries * sizes.head);
      relative_table = cursor.Take(head.head_dim * sizes.relative);
      relative_bias = cursor.Take(sizes.relative);
      for (int64_t panel = 0; panel < 2; ++panel) {
        keys[panel] = cursor.Take(head.head_dim * sizes.key_stride);
        values[panel] = cursor.Take(sizes.keys * sizes.value);
      }
      total = cursor.used();
    }

    float* query;           // [queries][head], times 1 / sqrt(d)
    float* relative_table;  // [d][relative]
    float* relative_bias;   // [relative]
    float* keys[2];         // [d][KeyStride(panel's keys)], transposed
    float* values[2];       // [keys][value]
    int64_t total;
  };

  const AttentionHead& head_;
  const TileSizes& sizes_;
  const Workspace work_;
};

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
class RoundedForwardProducts {
 public:
  static constexpr int64_t kGroupRows = kRoundedRows;
  static constexpr int64_t kKeyMultiple = kRoundedColumns;

  HWY_INLINE RoundedForwardProducts(const AttentionHead& head,
                                    const TileSizes& sizes, float* workspace)
      : head_(head),
        sizes_(sizes),
        products_(*head.rounded),
        scale_(head),
        work_(sizes, workspace) {}

  HWY_INLINE void Begin() {
    products_.begin();
    if (sizes_.relative > 0) {
      PackRoundedTable(head_, sizes_, work_.rows, work_.relative_table);
      PackRelativeBias(head_, sizes_, work_.relative_bias);
    }
  }
  HWY_INLINE void End() { products_.end(); }

  HWY_INLINE void PackQueries(int64_t first, int64_t queries, int64_t n,
                              float* relative) {
    uint16_t* const packed = work_.query + n * sizes_.head_depth;
    RoundRows(products_, head_.query + first * head_.query_stride,
              head_.query_stride, queries, head_.head_dim, sizes_.head_depth,
              scale_.power, packed);
    if (sizes_.relative > 0) {
      RoundedRelativeScores(products_, sizes_, queries, packed,
                            work_.relative_table, scale_.rest,
                            work_.relative_bias, relative);
    }
  }

  HWY_INLINE void PackKeys(const KeyBlock& block, int64_t first, int64_t keys,
                           int64_t panel, int64_t at, int64_t panel_keys,
                           bool with_values) {
    PackRoundedTransposed(products_, block.key + first * block.key_stride,
                          block.key_stride, keys, head_.head_dim,
                          sizes_.head_depth, work_.rows, work_.keys[panel] + at,
                          KeyStride(panel_keys));
    if (with_values) {
      PackRoundedPairs(products_, block.value + first * block.value_stride,
                       block.value_stride, keys, head_.value_dim, sizes_.value,
                       at + keys == panel_keys,
                       work_.values[panel] + at / 2 * sizes_.value);
    }
  }
  // Weights behind those of `end` are zeros, but their values must be numbers.
  HWY_INLINE int64_t KeysNeeded(int64_t end, int64_t panel_keys) const {
    return std::min(end + kRoundedDepth - 1, panel_keys);
  }

  HWY_INLINE void MultiplyKeys(int64_t n, int64_t rows, int64_t panel,
                               int64_t at, int64_t keys, int64_t panel_keys,
                               const Prefetch&, float* scores) {
    products_.multiply({.columns = RoundUp(keys, kRoundedColumns),
                        .depth = sizes_.head_depth,
                        .a = work_.query + n * sizes_.head_depth,
                        .a_stride = sizes_.head_depth,
                        .b = work_.keys[panel] + at,
                        .b_stride = KeyStride(panel_keys),
                        .c = scores,
                        .c_stride = sizes_.score_stride,
                        .adds = false});
    for (int64_t r = 0; scale_.rest != 1.0f && r < rows; ++r) {
      ScaleRun(scale_.rest, keys, scores + r * sizes_.score_stride);
    }
  }

  HWY_INLINE void MultiplyValues(const float* weights, int64_t rows,
                                 int64_t panel, int64_t at, int64_t keys,
                                 bool adds, const Prefetch&, float* context) {
    const int64_t depth = RoundUp(keys, kRoundedDepth);
    for (int64_t r = 0; r < rows; ++r) {
      products_.round_row(weights + r * sizes_.score_stride, keys, depth, 1.0f,
                          work_.weights + r * sizes_.score_depth);
    }
    products_.multiply({.columns = sizes_.value,
                        .depth = depth,
                        .a = work_.weights,
                        .a_stride = sizes_.score_depth,
                        .b = work_.values[panel] + at / 2 * sizes_.value,
                        .b_stride = sizes_.value,
                        .c = context,
                        .c_stride = sizes_.value,
                        .adds = adds});
  }

  static int64_t WorkspaceSize(const TileSizes& sizes) {
    return Workspace(sizes, nullptr).total;
  }

 private:
  struct Workspace {
    Workspace(const TileSizes& sizes, float* begin) {
      WorkspaceCursor cursor(begin);
      query = cursor.Take<uint16_t>(kTileQueries * sizes.head_depth);
      relative_table =
          cursor.Take<uint32_t>(sizes.head_depth / 2 * sizes.relative);
      relative_bias = cursor.Take(sizes.relative);
      rows = cursor.Take<uint16_t>(RoundedRowsSize(sizes));
      weights = cursor.Take<uint16_t>(kRoundedRows * sizes.score_depth);
      for (int64_t panel = 0; panel < 2; ++panel) {
        keys[panel] =
            cursor.Take<uint32_t>(sizes.head_depth / 2 * sizes.key_stride);
        values[panel] = cursor.Take<uint32_t>((sizes.keys + kRoundedDepth + 1) /
                                              2 * sizes.value);
      }
      total = cursor.used();
    }

    uint16_t* query;           // [queries][head_depth]
    uint32_t* relative_table;  // pairs of [head_depth][relative]
    float* relative_bias;      // [relative]
    uint16_t* rows;            // rows that are to be transposed
    uint16_t* weights;         // [16][score_depth]
    uint32_t* keys[2];         // pairs of [head_depth][KeyStride(panel's keys)]
    uint32_t* values[2];       // pairs of [keys][value]
    int64_t total;
  };

  const AttentionHead& head_;
  const TileSizes& sizes_;
  const RoundedProducts& products_;
  const SplitScale scale_;
  const Workspace work_;
};
#endif

}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled include guard
