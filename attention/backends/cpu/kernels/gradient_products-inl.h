// Products of weights and score gradients with queries, keys and values.
// Compiled once for each SIMD target: see foreach_target.h of Highway.

#include <algorithm>
#include <cstdint>

#include "attention/backends/cpu/kernels/attention_tile.h"
#include "attention/backends/cpu/kernels/backward_workspace.h"
#include "attention/backends/cpu/kernels/key_runs-inl.h"
#include "attention/backends/cpu/kernels/matrix-inl.h"
#include "attention/backends/cpu/kernels/packing-inl.h"
#include "attention/backends/cpu/kernels/relative_columns-inl.h"
#include "attention/backends/cpu/kernels/tile-inl.h"
#include "hwy/highway.h"

#if defined(ETC_ATTENTION_BACKENDS_CPU_KERNELS_GRADIENT_PRODUCTS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef ETC_ATTENTION_BACKENDS_CPU_KERNELS_GRADIENT_PRODUCTS_INL_H_
#undef ETC_ATTENTION_BACKENDS_CPU_KERNELS_GRADIENT_PRODUCTS_INL_H_
#else
#define ETC_ATTENTION_BACKENDS_CPU_KERNELS_GRADIENT_PRODUCTS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace etc::kernels::HWY_NAMESPACE {

// Adds to the gradients of keys and values the products with the weights and
// score gradients of `queries` queries, from the workspace's n-th on; six keys
// at a time, and only those groups of six queries whose hull reaches so far.
// Rows of weights and score gradients begin with key hull.begin, gradients of
// keys with `first_key`.
HWY_INLINE void AddKeyGradients(const BackwardWorkspace& work,
                                int64_t first_key, KeyRange hull, int64_t n,
                                int64_t queries, const KeyRange* group_hulls) {
  const TileSizes& sizes = work.sizes;
  for (int64_t j = hull.begin; j < hull.end; j += kBlockRows) {
    const int64_t keys = std::min<int64_t>(kBlockRows, hull.end - j);
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
    const int64_t at = row * sizes.score_stride + j - hull.begin;
    const int64_t k = j - first_key;
    MultiplyRowGroup</*kAdd=*/true>(
        keys, sizes.value, {work.weights + at, 1, sizes.score_stride},
        {work.context_gradient + (n + row) * sizes.value, sizes.value}, rows,
        work.value_gradient + k * sizes.value, sizes.value);
    MultiplyRowGroup</*kAdd=*/true>(
        keys, sizes.head, {work.gradients + at, 1, sizes.score_stride},
        {work.query + (n + row) * sizes.head, sizes.head}, rows,
        work.key_gradient + k * sizes.head, sizes.head);
  }
}

// dq += dS E and dE += dS^T q, with dS by relative column, for all queries of a
// tile; dE as in BackwardResults.
HWY_INLINE void AddRelativeProducts(const AttentionHead& head,
                                    const BackwardWorkspace& work,
                                    int64_t queries, float* table_gradient) {
  const TileSizes& sizes = work.sizes;
  const int64_t m = head.max_distance;
  const int64_t columns = RelativeColumns(m);
  for (int64_t c = 0; c < columns; ++c) {
    PackRow(head.relative + RelativeIdOfColumn(c, m) * head.relative_stride,
            head.head_dim, sizes.head, 1.0f,
            work.relative_table + c * sizes.head);
  }
  MultiplyAdd(queries, sizes.head, {work.relative_gradient, sizes.relative, 1},
              {work.relative_table, sizes.head}, columns, work.query_gradient,
              sizes.head);
  const int64_t stride = RelativeGradientStride(head);
  MultiplyAdd(columns, sizes.head, {work.relative_gradient, 1, sizes.relative},
              {work.query, sizes.head}, queries, table_gradient, stride);
  for (int64_t c = 0; c < columns; ++c) {
    float sum = 0.0f;
    for (int64_t n = 0; n < queries; ++n) {
      sum += work.relative_gradient[n * sizes.relative + c];
    }
    table_gradient[c * stride + head.head_dim] += ScoreScale(head) * sum;
  }
}

}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled include guard
