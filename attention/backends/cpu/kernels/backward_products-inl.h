// The products of a backward pass, in float32 or of operands rounded to
// bfloat16, and how they want their operands packed. Compiled once for each
// SIMD target: see foreach_target.h of Highway.

#include <algorithm>
#include <cstdint>

#include "attention/backends/cpu/kernels/attention_tile.h"
#include "attention/backends/cpu/kernels/backward_workspace.h"
#include "attention/backends/cpu/kernels/gradient_rows-inl.h"
#include "attention/backends/cpu/kernels/key_runs-inl.h"
#include "attention/backends/cpu/kernels/matrix-inl.h"
#include "attention/backends/cpu/kernels/packing-inl.h"
#include "attention/backends/cpu/kernels/relative_columns-inl.h"
#include "attention/backends/cpu/kernels/rounded_operands-inl.h"
#include "attention/backends/cpu/kernels/rounded_products.h"
#include "attention/backends/cpu/kernels/tile-inl.h"
#include "attention/backends/cpu/kernels/tile_sizes.h"
#include "hwy/highway.h"

#if defined(ETC_ATTENTION_BACKENDS_CPU_KERNELS_BACKWARD_PRODUCTS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef ETC_ATTENTION_BACKENDS_CPU_KERNELS_BACKWARD_PRODUCTS_INL_H_
#undef ETC_ATTENTION_BACKENDS_CPU_KERNELS_BACKWARD_PRODUCTS_INL_H_
#else
#define ETC_ATTENTION_BACKENDS_CPU_KERNELS_BACKWARD_PRODUCTS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace etc::kernels::HWY_NAMESPACE {

// A group of queries among those whose gradients are kept at a time (a step).
struct StepGroup {
  int64_t n;      // the number of its first query in the tile
  int64_t row;    // and in the step
  int64_t rows;   // queries
  KeyRange hull;  // of its keys
  KeyRange kept;  // keys of the rows of weights and gradients
  int64_t at;     // key hull.begin in the chunk
};

// Adds the sums of the relative score gradients to the bias, which is the
// column behind the table's gradient.
HWY_INLINE void AddRelativeBias(const AttentionHead& head,
                                const BackwardWorkspace& work, int64_t queries,
                                float* table_gradient) {
  const int64_t stride = RelativeGradientStride(head.head_dim);
  for (int64_t c = 0; c < RelativeColumns(head.max_distance); ++c) {
    float sum = 0.0f;
    for (int64_t n = 0; n < queries; ++n) {
      sum += work.relative_gradient[n * work.sizes.relative + c];
    }
    table_gradient[c * stride + head.head_dim] += ScoreScale(head) * sum;
  }
}

// Both classes have the same members. `n` numbers the queries of a tile, `at`
// the keys of a chunk, of which there are at most TileSizes::keys.
class FloatBackwardProducts {
 public:
  static constexpr int64_t kGroupRows = kBlockRows;
  static constexpr int64_t kKeyMultiple = 1;
  static constexpr int64_t kQueriesOfStep = kGradientQueries;
  static constexpr int64_t kQueriesToPack = kPackedQueries;

  HWY_INLINE FloatBackwardProducts(const AttentionHead& head,
                                   const BackwardWorkspace& shared)
      : head_(head),
        sizes_(shared.sizes),
        shared_(shared),
        work_(head, shared.sizes, shared.operands) {}

  HWY_INLINE void Begin() {}
  HWY_INLINE void End() {}

  // Packs what relative scores need.
  HWY_INLINE void PackTable() {
    PackRelativeTransposed(head_, sizes_, work_.relative_table);
    PackRelativeBias(head_, sizes_, work_.relative_bias);
  }

  // Packs queries [first, first + queries), the n-th and following of the tile,
  // and the gradients of their contexts.
  HWY_INLINE void PackQueries(int64_t first, int64_t queries, int64_t n,
                              const BackwardInputs& inputs,
                              bool with_relative) {
    float* const query = work_.query + n * sizes_.head;
    kernels::HWY_NAMESPACE::PackQueries(head_, sizes_, first, first + queries,
                                        query);
    if (with_relative) {
      RelativeScores(head_, sizes_, queries, query, work_.relative_table,
                     work_.relative_bias,
                     shared_.relative + n * sizes_.relative);
    }
    PackRows(inputs.context_gradient + first * inputs.context_gradient_stride,
             inputs.context_gradient_stride, queries, head_.value_dim,
             sizes_.value, 1.0f, work_.context_gradient + n * sizes_.value);
  }
  // Returns the dot product of the packed context gradient of query n with its
  // context: of what MultiplyValues multiplies, else score gradients would not
  // add up to 0 in a row.
  HWY_INLINE float ContextDot(int64_t n, const float* context) const {
    return DotProduct(work_.context_gradient + n * sizes_.value, context,
                      head_.value_dim);
  }

  HWY_INLINE void BeginChunk() {}

  // Packs keys [first, first + keys) of a block, at most kPackedKeys, and their
  // values, and clears their sums; for scores only if these are needed.
  HWY_INLINE void PackKeys(const KeyBlock& block, int64_t first, int64_t keys,
                           int64_t at, int64_t, bool with_scores) {
    const float* const key = block.key + first * block.key_stride;
    PackTransposed(block.value + first * block.value_stride, block.value_stride,
                   keys, head_.value_dim, work_.values_transposed + at,
                   sizes_.key_stride);
    if (with_scores) {
      PackTransposed(key, block.key_stride, keys, head_.head_dim,
                     work_.keys_transposed + at, sizes_.key_stride);
    }
    PackRows(key, block.key_stride, keys, head_.head_dim, sizes_.head, 1.0f,
             work_.keys + at * sizes_.head);
    FillRun(0.0f, keys * sizes_.head, work_.key_gradient + at * sizes_.head);
    FillRun(0.0f, keys * sizes_.value,
            work_.value_gradient + at * sizes_.value);
  }
  // The keys of a chunk of `chunk_keys` that must be packed for products with
  // keys before `end`.
  HWY_INLINE int64_t KeysNeeded(int64_t end, int64_t) const { return end; }

  // products [rows][score_stride] = context gradients . values
  HWY_INLINE void MultiplyValues(const StepGroup& group,
                                 const Prefetch& prefetch, float* products) {
    MultiplyRowGroup</*kAdd=*/false>(
        group.rows, group.hull.size(),
        {work_.context_gradient + group.n * sizes_.value, sizes_.value, 1},
        {work_.values_transposed + group.at, sizes_.key_stride},
        head_.value_dim, products, sizes_.score_stride, prefetch);
  }
  // scores [rows][score_stride] = queries . keys
  HWY_INLINE void MultiplyKeys(const StepGroup& group, const Prefetch& prefetch,
                               float* scores) {
    MultiplyRowGroup</*kAdd=*/false>(
        group.rows, group.hull.size(),
        {work_.query + group.n * sizes_.head, sizes_.head, 1},
        {work_.keys_transposed + group.at, sizes_.key_stride}, head_.head_dim,
        scores, sizes_.score_stride, prefetch);
  }

  // The buffers of weights and score gradients of row r of a group, at key
  // group.kept.begin.
  HWY_INLINE float* Weights(const StepGroup& group, int64_t r) {
    return work_.weights + (group.row + r) * sizes_.score_stride;
  }
  HWY_INLINE float* Gradients(const StepGroup& group, int64_t r) {
    return work_.gradients + (group.row + r) * sizes_.score_stride;
  }
  // Writes zeros to both, of a group without keys.
  HWY_INLINE void ClearRows(const StepGroup& group) {
    for (int64_t r = 0; r < group.rows; ++r) {
      FillRun(0.0f, group.kept.size(), Weights(group, r));
      FillRun(0.0f, group.kept.size(), Gradients(group, r));
    }
  }

  // Adds the products of a group's score gradients with keys to the gradients
  // of its queries.
  HWY_INLINE void AddQueryGradients(const StepGroup& group,
                                    const Prefetch& prefetch) {
    MultiplyRowGroup</*kAdd=*/true>(
        group.rows, sizes_.head,
        {Gradients(group, 0) + group.hull.begin - group.kept.begin,
         sizes_.score_stride, 1},
        {work_.keys + group.at * sizes_.head, sizes_.head}, group.hull.size(),
        shared_.query_gradient + group.n * sizes_.head, sizes_.head, prefetch);
  }

  // Adds the products of weights and score gradients of a step of `queries`
  // queries, of which the n-th is the first, to the gradients of the keys
  // `kept`, the first of which is key `at` of the chunk; six keys at a time,
  // and only those groups whose hull reaches so far.
  HWY_INLINE void AddKeyGradients(KeyRange kept, int64_t at, int64_t n,
                                  int64_t queries,
                                  const KeyRange* group_hulls) {
    for (int64_t j = kept.begin; j < kept.end; j += kBlockRows) {
      const int64_t keys = std::min<int64_t>(kBlockRows, kept.end - j);
      const auto meets = [&](int64_t group) {
        return !Intersect(group_hulls[group], {j, j + keys}).empty();
      };
      int64_t first = 0;
      int64_t last = (queries + kBlockRows - 1) / kBlockRows;
      while (first < last && !meets(first)) {
        ++first;
      }
      while (first < last && !meets(last - 1)) {
        --last;
      }
      const int64_t row = first * kBlockRows;
      const int64_t rows = std::min(last * kBlockRows, queries) - row;
      const int64_t from = row * sizes_.score_stride + j - kept.begin;
      const int64_t k = at + j - kept.begin;
      MultiplyRowGroup</*kAdd=*/true>(
          keys, sizes_.value, {work_.weights + from, 1, sizes_.score_stride},
          {work_.context_gradient + (n + row) * sizes_.value, sizes_.value},
          rows, work_.value_gradient + k * sizes_.value, sizes_.value);
      MultiplyRowGroup</*kAdd=*/true>(
          keys, sizes_.head, {work_.gradients + from, 1, sizes_.score_stride},
          {work_.query + (n + row) * sizes_.head, sizes_.head}, rows,
          work_.key_gradient + k * sizes_.head, sizes_.head);
    }
  }

  // Adds the sums of a chunk's keys to the results.
  HWY_INLINE void AddKeySums(KeyRange chunk, const GradientPieces& key,
                             const GradientPieces& value) {
    AddToPieces(key, chunk, 1.0f, work_.key_gradient, sizes_.head,
                head_.head_dim);
    AddToPieces(value, chunk, 1.0f, work_.value_gradient, sizes_.value,
                head_.value_dim);
  }

  // dq += dS E and dE += dS^T q, with dS by relative column, for all queries of
  // a tile; dE as in BackwardResults.
  HWY_INLINE void AddRelativeProducts(int64_t queries, float* table_gradient) {
    const int64_t m = head_.max_distance;
    const int64_t columns = RelativeColumns(m);
    for (int64_t c = 0; c < columns; ++c) {
      PackRow(head_.relative + RelativeIdOfColumn(c, m) * head_.relative_stride,
              head_.head_dim, sizes_.head, 1.0f,
              work_.relative_table + c * sizes_.head);
    }
    MultiplyAdd(queries, sizes_.head,
                {shared_.relative_gradient, sizes_.relative, 1},
                {work_.relative_table, sizes_.head}, columns,
                shared_.query_gradient, sizes_.head);
    MultiplyAdd(columns, sizes_.head,
                {shared_.relative_gradient, 1, sizes_.relative},
                {work_.query, sizes_.head}, queries, table_gradient,
                RelativeGradientStride(head_.head_dim));
    AddRelativeBias(head_, shared_, queries, table_gradient);
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
      relative_table = cursor.Take(sizes.head * sizes.relative);
      relative_bias = cursor.Take(sizes.relative);
      context_gradient = cursor.Take(kTileQueries * sizes.value);
      keys = cursor.Take(sizes.keys * sizes.head);
      keys_transposed = cursor.Take(head.head_dim * sizes.key_stride);
      values_transposed = cursor.Take(head.value_dim * sizes.key_stride);
      key_gradient = cursor.Take(sizes.keys * sizes.head);
      value_gradient = cursor.Take(sizes.keys * sizes.value);
      weights = cursor.Take(kQueriesOfStep * sizes.score_stride);
      gradients = cursor.Take(kQueriesOfStep * sizes.score_stride);
      total = cursor.used();
    }

    float* query;              // [queries][head], times 1 / sqrt(d)
    float* relative_table;     // [d][relative] or [relative][head]
    float* relative_bias;      // [relative]
    float* context_gradient;   // [queries][value]: dO
    float* keys;               // [keys][head]
    float* keys_transposed;    // [d][key_stride]
    float* values_transposed;  // [d_value][key_stride]
    float* key_gradient;       // [keys][head]
    float* value_gradient;     // [keys][value]
    float* weights;            // [kQueriesOfStep][score_stride]: w
    float* gradients;          // [kQueriesOfStep][score_stride]: dS
    int64_t total;
  };

  const AttentionHead& head_;
  const TileSizes& sizes_;
  const BackwardWorkspace& shared_;
  const Workspace work_;
};

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
// Gradients of keys and values are summed transposed, so that weights and score
// gradients, which come in rows of keys, need no transposition: pairs of rows
// are the second factor.
class RoundedBackwardProducts {
 public:
  static constexpr int64_t kGroupRows = kRoundedRows;
  static constexpr int64_t kKeyMultiple = kRoundedColumns;
  static constexpr int64_t kQueriesOfStep = kRoundedGradientQueries;
  static constexpr int64_t kQueriesToPack = kQueriesOfStep;

  HWY_INLINE RoundedBackwardProducts(const AttentionHead& head,
                                     const BackwardWorkspace& shared)
      : head_(head),
        sizes_(shared.sizes),
        shared_(shared),
        products_(*head.rounded),
        scale_(head),
        work_(shared.sizes, shared.operands) {}

  HWY_INLINE void Begin() { products_.begin(); }
  HWY_INLINE void End() { products_.end(); }

  HWY_INLINE void PackTable() {
    PackRoundedTable(head_, sizes_, work_.rows, work_.relative_table);
    PackRelativeBias(head_, sizes_, work_.relative_bias);
  }

  HWY_INLINE void PackQueries(int64_t first, int64_t queries, int64_t n,
                              const BackwardInputs& inputs,
                              bool with_relative) {
    const float* const query = head_.query + first * head_.query_stride;
    uint16_t* const packed = work_.query + n * sizes_.head_depth;
    RoundRows(products_, query, head_.query_stride, queries, head_.head_dim,
              sizes_.head_depth, scale_.power, packed);
    PackByColumn(query, head_.query_stride, queries, head_.head_dim,
                 sizes_.head, scale_.power,
                 work_.query_transposed + n * sizes_.head);
    if (with_relative) {
      RoundedRelativeScores(
          products_, sizes_, queries, packed, work_.relative_table, scale_.rest,
          work_.relative_bias, shared_.relative + n * sizes_.relative);
    }
    const int64_t stride = inputs.context_gradient_stride;
    const float* const gradient = inputs.context_gradient + first * stride;
    RoundRows(products_, gradient, stride, queries, head_.value_dim,
              sizes_.value_depth, 1.0f,
              work_.context_gradient + n * sizes_.value_depth);
    PackByColumn(gradient, stride, queries, head_.value_dim, sizes_.value, 1.0f,
                 work_.gradient_transposed + n * sizes_.value);
  }
  HWY_INLINE float ContextDot(int64_t n, const float* context) const {
    return RoundedDotProduct(work_.context_gradient + n * sizes_.value_depth,
                             context, head_.value_dim);
  }

  HWY_INLINE void BeginChunk() {
    FillRun(0.0f, sizes_.head * sizes_.key_stride, work_.key_gradient);
    FillRun(0.0f, sizes_.value * sizes_.key_stride, work_.value_gradient);
  }

  HWY_INLINE void PackKeys(const KeyBlock& block, int64_t first, int64_t keys,
                           int64_t at, int64_t chunk_keys, bool with_scores) {
    const float* const key = block.key + first * block.key_stride;
    PackRoundedTransposed(products_, block.value + first * block.value_stride,
                          block.value_stride, keys, head_.value_dim,
                          sizes_.value_depth, work_.rows,
                          work_.values_transposed + at, sizes_.key_stride);
    if (with_scores) {
      PackRoundedTransposed(products_, key, block.key_stride, keys,
                            head_.head_dim, sizes_.head_depth, work_.rows,
                            work_.keys_transposed + at, sizes_.key_stride);
    }
    PackRoundedPairs(products_, key, block.key_stride, keys, head_.head_dim,
                     sizes_.head, at + keys == chunk_keys,
                     work_.keys + at / 2 * sizes_.head);
  }
  // Gradients behind those of `end` are zeros, but their keys must be numbers.
  HWY_INLINE int64_t KeysNeeded(int64_t end, int64_t chunk_keys) const {
    return std::min(end + kRoundedDepth - 1, chunk_keys);
  }

  HWY_INLINE void MultiplyValues(const StepGroup& group, const Prefetch&,
                                 float* products) {
    products_.multiply(
        {.columns = RoundUp(group.hull.size(), kRoundedColumns),
         .depth = sizes_.value_depth,
         .a = work_.context_gradient + group.n * sizes_.value_depth,
         .a_stride = sizes_.value_depth,
         .b = work_.values_transposed + group.at,
         .b_stride = sizes_.key_stride,
         .c = products,
         .c_stride = sizes_.score_stride,
         .adds = false});
  }
  HWY_INLINE void MultiplyKeys(const StepGroup& group, const Prefetch&,
                               float* scores) {
    products_.multiply({.columns = RoundUp(group.hull.size(), kRoundedColumns),
                        .depth = sizes_.head_depth,
                        .a = work_.query + group.n * sizes_.head_depth,
                        .a_stride = sizes_.head_depth,
                        .b = work_.keys_transposed + group.at,
                        .b_stride = sizes_.key_stride,
                        .c = scores,
                        .c_stride = sizes_.score_stride,
                        .adds = false});
    for (int64_t r = 0; scale_.rest != 1.0f && r < group.rows; ++r) {
      ScaleRun(scale_.rest, group.hull.size(),
               scores + r * sizes_.score_stride);
    }
  }

  HWY_INLINE float* Weights(const StepGroup&, int64_t r) {
    return work_.weights + r * sizes_.score_stride;
  }
  HWY_INLINE float* Gradients(const StepGroup&, int64_t r) {
    return work_.gradients + r * sizes_.score_stride;
  }
  HWY_INLINE void ClearRows(const StepGroup& group) { PackPairs(group, 0); }

  HWY_INLINE void AddQueryGradients(const StepGroup& group, const Prefetch&) {
    PackPairs(group, group.rows);
    const int64_t depth = RoundUp(group.hull.size(), kRoundedDepth);
    for (int64_t r = 0; r < group.rows; ++r) {
      products_.round_row(
          Gradients(group, r) + group.hull.begin - group.kept.begin,
          group.hull.size(), depth, 1.0f,
          work_.group_gradients + r * sizes_.score_depth);
    }
    products_.multiply({.columns = sizes_.head,
                        .depth = depth,
                        .a = work_.group_gradients,
                        .a_stride = sizes_.score_depth,
                        .b = work_.keys + group.at / 2 * sizes_.head,
                        .b_stride = sizes_.head,
                        .c = shared_.query_gradient + group.n * sizes_.head,
                        .c_stride = sizes_.head,
                        .adds = true});
  }

  HWY_INLINE void AddKeyGradients(KeyRange kept, int64_t at, int64_t n,
                                  int64_t queries, const KeyRange*) {
    const int64_t depth = RoundUp(queries, kRoundedDepth);
    const int64_t columns = RoundUp(kept.size(), kRoundedColumns);
    for (int64_t pair = RoundUp(queries, kGroupRows) / 2; pair < depth / 2;
         ++pair) {
      products_.round_pairs(nullptr, nullptr, 0, columns, 1.0f,
                            work_.weight_pairs + pair * sizes_.score_stride);
      products_.round_pairs(nullptr, nullptr, 0, columns, 1.0f,
                            work_.gradient_pairs + pair * sizes_.score_stride);
    }
    const auto add = [&](int64_t rows, const uint16_t* factor,
                         const uint32_t* pairs, float* sums) {
      for (int64_t r = 0; r < rows; r += kRoundedRows) {
        products_.multiply({.columns = columns,
                            .depth = depth,
                            .a = factor + r * kQueriesOfStep,
                            .a_stride = kQueriesOfStep,
                            .b = pairs,
                            .b_stride = sizes_.score_stride,
                            .c = sums + r * sizes_.key_stride + at,
                            .c_stride = sizes_.key_stride,
                            .adds = true});
      }
    };
    add(sizes_.value, work_.gradient_transposed + n * sizes_.value,
        work_.weight_pairs, work_.value_gradient);
    add(sizes_.head, work_.query_transposed + n * sizes_.head,
        work_.gradient_pairs, work_.key_gradient);
  }

  HWY_INLINE void AddKeySums(KeyRange chunk, const GradientPieces& key,
                             const GradientPieces& value) {
    AddTransposed(chunk, scale_.rest, work_.key_gradient, sizes_.head,
                  head_.head_dim, key);
    AddTransposed(chunk, 1.0f, work_.value_gradient, sizes_.value,
                  head_.value_dim, value);
  }

  HWY_INLINE void AddRelativeProducts(int64_t queries, float* table_gradient) {
    const int64_t columns = RelativeColumns(head_.max_distance);
    const auto table_row = [&](int64_t c) {
      return c < columns
                 ? head_.relative + RelativeIdOfColumn(c, head_.max_distance) *
                                        head_.relative_stride
                 : nullptr;
    };
    for (int64_t c = 0; c < sizes_.relative_depth; c += 2) {
      products_.round_pairs(table_row(c), table_row(c + 1), head_.head_dim,
                            sizes_.head, 1.0f,
                            work_.relative_table + c / 2 * sizes_.head);
    }
    FillRun(0.0f, sizes_.head * sizes_.relative, work_.table_gradient);
    for (int64_t n = 0; n < queries; n += kQueriesOfStep) {
      AddRelativeStep(n, std::min(queries - n, kQueriesOfStep));
    }
    const int64_t stride = RelativeGradientStride(head_.head_dim);
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t k = 0; k < head_.head_dim; ++k) {
        table_gradient[c * stride + k] +=
            scale_.rest * work_.table_gradient[k * sizes_.relative + c];
      }
    }
    AddRelativeBias(head_, shared_, queries, table_gradient);
  }

  static int64_t WorkspaceSize(const TileSizes& sizes) {
    return Workspace(sizes, nullptr).total;
  }

 private:
  struct Workspace {
    Workspace(const TileSizes& sizes, float* begin) {
      WorkspaceCursor cursor(begin);
      query = cursor.Take<uint16_t>(kTileQueries * sizes.head_depth);
      query_transposed = cursor.Take<uint16_t>(kTileQueries * sizes.head);
      relative_table = cursor.Take<uint32_t>(
          std::max(sizes.head_depth / 2 * sizes.relative,
                   sizes.relative_depth / 2 * sizes.head));
      relative_bias = cursor.Take(sizes.relative);
      relative_rows =
          cursor.Take<uint16_t>(kRoundedRows * sizes.relative_depth);
      relative_pairs =
          cursor.Take<uint32_t>(kQueriesOfStep / 2 * sizes.relative);
      table_gradient = cursor.Take(sizes.head * sizes.relative);
      context_gradient =
          cursor.Take<uint16_t>(kTileQueries * sizes.value_depth);
      gradient_transposed = cursor.Take<uint16_t>(kTileQueries * sizes.value);
      keys = cursor.Take<uint32_t>((sizes.keys + kRoundedDepth + 1) / 2 *
                                   sizes.head);
      keys_transposed =
          cursor.Take<uint32_t>(sizes.head_depth / 2 * sizes.key_stride);
      values_transposed =
          cursor.Take<uint32_t>(sizes.value_depth / 2 * sizes.key_stride);
      key_gradient = cursor.Take(sizes.head * sizes.key_stride);
      value_gradient = cursor.Take(sizes.value * sizes.key_stride);
      rows = cursor.Take<uint16_t>(RoundedRowsSize(sizes));
      key_rows =
          cursor.Take(kTransposedRows * std::max(sizes.head, sizes.value));
      weights = cursor.Take(kGroupRows * sizes.score_stride);
      gradients = cursor.Take(kGroupRows * sizes.score_stride);
      weight_pairs =
          cursor.Take<uint32_t>(kQueriesOfStep / 2 * sizes.score_stride);
      gradient_pairs =
          cursor.Take<uint32_t>(kQueriesOfStep / 2 * sizes.score_stride);
      group_gradients = cursor.Take<uint16_t>(kGroupRows * sizes.score_depth);
      total = cursor.used();
    }

    uint16_t* query;             // [queries][head_depth], times 1 / sqrt(d)
    uint16_t* query_transposed;  // [steps][head][kQueriesOfStep]
    // Pairs of [head_depth][relative] or [relative_depth][head].
    uint32_t* relative_table;
    float* relative_bias;           // [relative]
    uint16_t* relative_rows;        // [16][relative_depth]
    uint32_t* relative_pairs;       // pairs of [kQueriesOfStep][relative]
    float* table_gradient;          // [head][relative]
    uint16_t* context_gradient;     // [queries][value_depth]: dO
    uint16_t* gradient_transposed;  // [steps][value][kQueriesOfStep]
    uint32_t* keys;                 // pairs of [keys][head]
    uint32_t* keys_transposed;      // pairs of [head_depth][key_stride]
    uint32_t* values_transposed;    // pairs of [value_depth][key_stride]
    float* key_gradient;            // [head][key_stride]
    float* value_gradient;          // [value][key_stride]
    uint16_t* rows;                 // rows that are to be transposed
    float* key_rows;                // [kTransposedRows][head or value]
    float* weights;                 // [kGroupRows][score_stride]: w
    float* gradients;               // [kGroupRows][score_stride]: dS
    uint32_t* weight_pairs;         // pairs of [kQueriesOfStep][score_stride]
    uint32_t* gradient_pairs;       // idem
    uint16_t* group_gradients;      // [kGroupRows][score_depth]
    int64_t total;
  };

  // to [padded][kQueriesOfStep] = factor * from [queries][columns], transposed,
  // with zeros for further queries and columns.
  HWY_INLINE void PackByColumn(const float* from, int64_t from_stride,
                               int64_t queries, int64_t columns, int64_t padded,
                               float factor, uint16_t* to) {
    constexpr int64_t kPairs = kQueriesOfStep / 2;
    static_assert(kPairs <= kTransposedRows / 2);
    auto* const pairs = reinterpret_cast<uint32_t*>(work_.rows);
    for (int64_t pair = 0; pair < kPairs; ++pair) {
      const int64_t q = 2 * pair;
      products_.round_pairs(
          q < queries ? from + q * from_stride : nullptr,
          q + 1 < queries ? from + (q + 1) * from_stride : nullptr, columns,
          padded, factor, pairs + pair * padded);
    }
    TransposeWords(pairs, padded, kPairs, padded, to, kPairs);
  }

  // Packs pairs of the first `rows` rows of weights and gradients of a group;
  // others are zeros.
  HWY_INLINE void PackPairs(const StepGroup& group, int64_t rows) {
    const int64_t columns = RoundUp(group.kept.size(), kRoundedColumns);
    for (int64_t r = 0; r < kGroupRows; r += 2) {
      const int64_t to = (group.row + r) / 2 * sizes_.score_stride;
      const bool even = r < rows;
      const bool odd = r + 1 < rows;
      products_.round_pairs(even ? Weights(group, r) : nullptr,
                            odd ? Weights(group, r + 1) : nullptr,
                            group.kept.size(), columns, 1.0f,
                            work_.weight_pairs + to);
      products_.round_pairs(even ? Gradients(group, r) : nullptr,
                            odd ? Gradients(group, r + 1) : nullptr,
                            group.kept.size(), columns, 1.0f,
                            work_.gradient_pairs + to);
    }
  }

  // AddToPieces of factor * sums [padded][key_stride].
  HWY_INLINE void AddTransposed(KeyRange chunk, float factor, const float* sums,
                                int64_t padded, int64_t columns,
                                const GradientPieces& to) {
    for (int64_t at = 0; at < chunk.size(); at += kTransposedRows) {
      const int64_t keys = std::min(kTransposedRows, chunk.size() - at);
      PackTransposed(sums + at, sizes_.key_stride, padded, keys, work_.key_rows,
                     padded);
      AddToPieces(to, {chunk.begin + at, chunk.begin + at + keys}, factor,
                  work_.key_rows, padded, columns);
    }
  }

  // AddRelativeProducts of the queries of a step.
  HWY_INLINE void AddRelativeStep(int64_t n, int64_t queries) {
    const float* const gradient =
        shared_.relative_gradient + n * sizes_.relative;
    const auto row = [&](int64_t q) {
      return q < queries ? gradient + q * sizes_.relative : nullptr;
    };
    for (int64_t q = 0; q < kQueriesOfStep; q += 2) {
      products_.round_pairs(row(q), row(q + 1), sizes_.relative,
                            sizes_.relative, 1.0f,
                            work_.relative_pairs + q / 2 * sizes_.relative);
    }
    for (int64_t r = 0; r < sizes_.head; r += kRoundedRows) {
      products_.multiply(
          {.columns = sizes_.relative,
           .depth = kQueriesOfStep,
           .a = work_.query_transposed + n * sizes_.head + r * kQueriesOfStep,
           .a_stride = kQueriesOfStep,
           .b = work_.relative_pairs,
           .b_stride = sizes_.relative,
           .c = work_.table_gradient + r * sizes_.relative,
           .c_stride = sizes_.relative,
           .adds = true});
    }
    for (int64_t q = 0; q < queries; q += kRoundedRows) {
      for (int64_t r = 0; r < std::min(kRoundedRows, queries - q); ++r) {
        products_.round_row(row(q + r), sizes_.relative, sizes_.relative_depth,
                            1.0f,
                            work_.relative_rows + r * sizes_.relative_depth);
      }
      products_.multiply({.columns = sizes_.head,
                          .depth = sizes_.relative_depth,
                          .a = work_.relative_rows,
                          .a_stride = sizes_.relative_depth,
                          .b = work_.relative_table,
                          .b_stride = sizes_.head,
                          .c = shared_.query_gradient + (n + q) * sizes_.head,
                          .c_stride = sizes_.head,
                          .adds = true});
    }
  }

  const AttentionHead& head_;
  const TileSizes& sizes_;
  const BackwardWorkspace& shared_;
  const RoundedProducts& products_;
  const SplitScale scale_;
  const Workspace work_;
};
#endif

}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled include guard
