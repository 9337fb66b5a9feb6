// The backward pass of a tile. Probabilities are computed again from the
// carried scores, or if there are none from queries and keys:
//
//   p = softmax(S / divisor)             w = p with dropout
//   dp = dropout of (dO . V^T)           dS = p (dp - dO . O) / divisor + dS'
//
// dS' being the gradient of the carried scores, and dS that of the previous
// ones; then dV += w^T dO, dq += dS K, dK += dS^T q, and the same for the
// relative table, with dS added up by id. Of a gated head p = softmax(s + g R),
// of own and previous scores, where R = S - s, and the gradient of R has g
// before its first term: see score_gradients-inl.h.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/backends/cpu/kernels/backward_tile.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "attention/backends/cpu/kernels/attention_tile.h"
#include "attention/backends/cpu/kernels/backward_workspace.h"
#include "attention/backends/cpu/kernels/gradient_products-inl.h"
#include "attention/backends/cpu/kernels/gradient_rows-inl.h"
#include "attention/backends/cpu/kernels/group_scores-inl.h"
#include "attention/backends/cpu/kernels/invisible_keys-inl.h"
#include "attention/backends/cpu/kernels/key_bits-inl.h"
#include "attention/backends/cpu/kernels/packing-inl.h"
#include "attention/backends/cpu/kernels/prefetch_rows-inl.h"
#include "attention/backends/cpu/kernels/relative_columns-inl.h"
#include "attention/backends/cpu/kernels/score_gradients-inl.h"
#include "attention/backends/cpu/kernels/tile-inl.h"
#include "attention/backends/cpu/kernels/tile_sizes.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace etc::kernels::HWY_NAMESPACE {
namespace {

class Backward {
 public:
  HWY_INLINE Backward(const AttentionHead& head, int64_t begin, int64_t end,
                      const BackwardInputs& inputs,
                      const BackwardResults& results, float* workspace)
      : head_(head),
        begin_(begin),
        end_(end),
        inputs_(inputs),
        results_(results),
        work_(head, workspace),
        scores_(head, nothing_carried_, work_.sizes),
        threshold_(DropoutThreshold(head.dropout)),
        kept_(static_cast<float>(1.0 / (1.0 - head.dropout))),
        packed_queries_(begin) {}

  HWY_INLINE void Run() {
    KeyRange hulls[2] = {{0, 0}, {0, 0}};
    for (int b = 0; b < 2; ++b) {
      const KeyRange limit = {inputs_.keys[b].begin, inputs_.keys[b].end};
      if (!limit.empty()) {
        ZeroInvisibleRows(head_.blocks[b], begin_, end_, limit,
                          inputs_.carried_gradient[b], results_.previous[b]);
        hulls[b] = RowsHull(head_.blocks[b], begin_, end_, limit);
      }
    }
    if (hulls[0].empty() && hulls[1].empty()) {
      return;
    }
    if (RelativeScoresAreNeeded()) {
      PackRelativeTransposed(head_, work_.sizes, work_.relative_table);
      PackRelativeBias(head_, work_.sizes, work_.relative_bias);
    }
    for (int b = 0; b < 2; ++b) {
      if (!hulls[b].empty()) {
        AddBlock(b, hulls[b]);
      }
    }
    PackQueriesUpTo(end_);
    if (work_.sizes.relative > 0) {
      AddRelativeProducts(head_, work_, end_ - begin_, results_.relative);
    }
    AddToPieces(results_.query, {begin_, end_}, ScoreScale(head_),
                work_.query_gradient, work_.sizes.head, head_.head_dim);
    for (int b = 0; head_.is_gated && b < 2; ++b) {
      results_.gates[b] += static_cast<float>(gate_gradients_[b]);
    }
  }

 private:
  HWY_INLINE bool RelativeScoresAreNeeded() const {
    return work_.sizes.relative > 0 && ScoresAreNeeded(0);
  }

  // Packs the operands by query, up to `needed` or beyond, and clears the sums
  // by query.
  HWY_INLINE void PackQueriesUpTo(int64_t needed) {
    const TileSizes& sizes = work_.sizes;
    while (packed_queries_ < needed) {
      const int64_t first = packed_queries_;
      const int64_t queries = std::min(kPackedQueries, end_ - first);
      const int64_t n = first - begin_;
      float* const query = work_.query + n * sizes.head;
      PackQueries(head_, sizes, first, first + queries, query);
      if (RelativeScoresAreNeeded()) {
        RelativeScores(head_, sizes, queries, query, work_.relative_table,
                       work_.relative_bias,
                       work_.relative + n * sizes.relative);
      }
      float* const gradient = work_.context_gradient + n * sizes.value;
      PackRows(
          inputs_.context_gradient + first * inputs_.context_gradient_stride,
          inputs_.context_gradient_stride, queries, head_.value_dim,
          sizes.value, 1.0f, gradient);
      for (int64_t r = 0; r < queries; ++r) {
        work_.delta[n + r] =
            DotProduct(gradient + r * sizes.value,
                       inputs_.context + (first + r) * inputs_.context_stride,
                       head_.value_dim);
      }
      FillRun(0.0f, queries * sizes.head,
              work_.query_gradient + n * sizes.head);
      FillRun(0.0f, queries * sizes.relative,
              work_.relative_gradient + n * sizes.relative);
      packed_queries_ += queries;
    }
  }

  // Returns true if this layer's own scores must be recomputed. (One block of a
  // head may be empty, without rows, and computes nothing then.)
  HWY_INLINE bool ScoresAreNeeded(int b) const {
    return inputs_.carried[b].rows == nullptr ||
           results_.undone[b].rows != nullptr || head_.is_gated;
  }

  HWY_INLINE void AddBlock(int b, KeyRange hull) {
    const KeyBlock& block = head_.blocks[b];
    const int64_t groups = (end_ - begin_ + kBlockRows - 1) / kBlockRows;
    PrefetchRows prefetch(block, /*chunks=*/1, hull.end, groups, end_);
    prefetch.AddByKey(block.key, block.key_stride, head_.head_dim);
    prefetch.AddByKey(block.value, block.value_stride, head_.value_dim);
    prefetch.AddByQuery(head_.query, head_.query_stride, head_.head_dim);
    prefetch.AddByQuery(inputs_.context, inputs_.context_stride,
                        head_.value_dim);
    prefetch.AddByQuery(inputs_.context_gradient,
                        inputs_.context_gradient_stride, head_.value_dim);
    const Chunks chunks = ChunksOf(block, hull);
    for (int64_t n = 0; n < chunks.count; ++n) {
      AddChunk(b, chunks[n], &prefetch);
    }
  }

  HWY_INLINE void AddChunk(int b, KeyRange chunk, PrefetchRows* prefetch) {
    packed_ = chunk.begin;
    bits_.Begin(chunk);
    for (int64_t i = begin_; i < end_; i += kGradientQueries) {
      AddQueries(b, chunk, i, std::min(i + kGradientQueries, end_), prefetch);
    }
    // Every key of a chunk is seen by some query or lies between two such keys.
    PackKeys(b, chunk, chunk.end);
    AddToPieces(results_.key[b], chunk, 1.0f, work_.key_gradient,
                work_.sizes.head, head_.head_dim);
    AddToPieces(results_.value[b], chunk, 1.0f, work_.value_gradient,
                work_.sizes.value, head_.value_dim);
  }

  // Packs the keys of a chunk up to `needed` or beyond, and clears the sums by
  // key.
  HWY_INLINE void PackKeys(int b, KeyRange chunk, int64_t needed) {
    const KeyBlock& block = head_.blocks[b];
    const TileSizes& sizes = work_.sizes;
    while (packed_ < needed) {
      const int64_t keys = std::min(kPackedKeys, chunk.end - packed_);
      const int64_t at = packed_ - chunk.begin;
      const float* const key = block.key + packed_ * block.key_stride;
      PackTransposed(block.value + packed_ * block.value_stride,
                     block.value_stride, keys, head_.value_dim,
                     work_.values_transposed + at, sizes.key_stride);
      if (ScoresAreNeeded(b)) {
        PackTransposed(key, block.key_stride, keys, head_.head_dim,
                       work_.keys_transposed + at, sizes.key_stride);
      }
      PackRows(key, block.key_stride, keys, head_.head_dim, sizes.head, 1.0f,
               work_.keys + at * sizes.head);
      FillRun(0.0f, keys * sizes.head, work_.key_gradient + at * sizes.head);
      FillRun(0.0f, keys * sizes.value,
              work_.value_gradient + at * sizes.value);
      packed_ += keys;
    }
  }

  // Queries [begin, end), at most kGradientQueries.
  HWY_INLINE void AddQueries(int b, KeyRange chunk, int64_t begin, int64_t end,
                             PrefetchRows* prefetch) {
    const KeyBlock& block = head_.blocks[b];
    const KeyRange hull = RowsHull(block, begin, end, chunk);
    if (hull.empty()) {
      return;
    }
    PackQueriesUpTo(end);
    PackKeys(b, chunk, hull.end);
    KeyRange group_hulls[kGradientQueries / kBlockRows];
    for (int64_t i = begin; i < end; i += kBlockRows) {
      const int64_t n = i - begin_;
      QueryGroup group;
      group.block = b;
      group.first = i;
      group.rows = std::min<int64_t>(kBlockRows, end - i);
      group.relative = work_.relative + n * work_.sizes.relative;
      group.scores = work_.scores;
      group.relative_scores = work_.relative_scores;
      group.SetKeys(block, chunk, &bits_);
      group_hulls[(i - begin) / kBlockRows] = group.hull;
      if (group.hull.empty()) {
        for (int64_t r = i - begin; r < i - begin + group.rows; ++r) {
          FillRun(0.0f, hull.size(), WeightsAtKey0(r, hull) + hull.begin);
          FillRun(0.0f, hull.size(), GradientsAtKey0(r, hull) + hull.begin);
        }
      } else {
        AddGroup(group, chunk, hull, i - begin, prefetch);
      }
    }
    AddKeyGradients(work_, chunk.begin, hull, begin - begin_, end - begin,
                    group_hulls);
  }

  // Row of a query whose number is `row` in AddQueries, which has keys `hull`.
  HWY_INLINE float* WeightsAtKey0(int64_t row, KeyRange hull) {
    return work_.weights + row * work_.sizes.score_stride - hull.begin;
  }
  HWY_INLINE float* GradientsAtKey0(int64_t row, KeyRange hull) {
    return work_.gradients + row * work_.sizes.score_stride - hull.begin;
  }

  // Computes weights and score gradients of a group, and the gradients of its
  // queries. Its rows in the buffers are from `row` on, and begin with key
  // buffered.begin.
  HWY_INLINE void AddGroup(const QueryGroup& group, KeyRange chunk,
                           KeyRange buffered, int64_t row,
                           PrefetchRows* prefetch) {
    const int b = group.block;
    const TileSizes& sizes = work_.sizes;
    const KeyRange hull = group.hull;
    const int64_t offset = hull.begin - chunk.begin;
    const int64_t n = group.first - begin_;
    MultiplyRowGroup</*kAdd=*/false>(
        group.rows, hull.size(),
        {work_.context_gradient + n * sizes.value, sizes.value, 1},
        {work_.values_transposed + offset, sizes.key_stride}, head_.value_dim,
        work_.products, sizes.score_stride,
        ScorePrefetch(inputs_.carried[b], head_.blocks[b], group.first,
                      group.rows, hull));
    if (ScoresAreNeeded(b)) {
      ScoreAgain(group, offset);
    }
    for (int64_t r = 0; r < group.rows; ++r) {
      DifferentiateRow(group, buffered, row + r, r);
    }
    float* const gradients = GradientsAtKey0(row, buffered) + hull.begin;
    MultiplyRowGroup</*kAdd=*/true>(
        group.rows, sizes.head, {gradients, sizes.score_stride, 1},
        {work_.keys + offset * sizes.head, sizes.head}, hull.size(),
        work_.query_gradient + n * sizes.head, sizes.head,
        prefetch->Next(packed_, packed_queries_));
    for (int64_t r = 0; r < group.rows; ++r) {
      AddRelativeGradient(head_.blocks[b], head_.max_distance, group.first + r,
                          hull, gradients + r * sizes.score_stride,
                          work_.relative_gradient + (n + r) * sizes.relative);
    }
  }

  // This layer's own scores, to the bit as the forward pass had them: a score
  // that is rounded otherwise has another probability than the one that the
  // sum of exponentials holds.
  HWY_INLINE void ScoreAgain(const QueryGroup& group, int64_t offset) {
    const int b = group.block;
    const TileSizes& sizes = work_.sizes;
    scores_.PrepareRelative(group);
    MultiplyRowGroup</*kAdd=*/false>(
        group.rows, group.hull.size(),
        {work_.query + (group.first - begin_) * sizes.head, sizes.head, 1},
        {work_.keys_transposed + offset, sizes.key_stride}, head_.head_dim,
        group.scores, sizes.score_stride,
        ScorePrefetch(inputs_.carried_gradient[b], head_.blocks[b], group.first,
                      group.rows, group.hull));
    scores_.AddLinks(group);
    FloatVector most = hn::Set(FloatTag(), kLowest);
    for (int64_t r = 0; r < group.rows; ++r) {
      scores_.CompleteRow(group, r, &most);
    }
  }

  // Row r of a group, whose row is `buffer_row` of weights and gradients, which
  // begin at buffered.begin.
  HWY_INLINE void DifferentiateRow(const QueryGroup& group, KeyRange buffered,
                                   int64_t buffer_row, int64_t r) {
    const int b = group.block;
    const int64_t i = group.first + r;
    const KeyBlock& block = head_.blocks[b];
    const int64_t first = buffered.begin;
    // Returns the row from key `first` on, or null.
    const auto at_first = [first](auto* at_key_0) {
      return at_key_0 == nullptr ? nullptr : at_key_0 + first;
    };
    const int64_t offset =
        r * work_.sizes.score_stride + first - group.hull.begin;
    const float* const carried =
        at_first(ScoreRow(inputs_.carried[b], block, i));
    const RowsOfGradients rows = {
        .scores = carried != nullptr ? carried : work_.scores + offset,
        .own = work_.scores + offset,
        .undone = at_first(ScoreRow(results_.undone[b], block, i)),
        .products = work_.products + offset,
        .carried_gradient =
            at_first(ScoreRow(inputs_.carried_gradient[b], block, i)),
        .weights = WeightsAtKey0(buffer_row, buffered) + first,
        .gradients = GradientsAtKey0(buffer_row, buffered) + first,
        .previous_gradient =
            at_first(ScoreRow(results_.previous[b], block, i))};
    RowGradient row = {.factor = ExponentFactor(head_),
                       .highest = inputs_.row_max[i],
                       .inverse_sum = inputs_.row_inverse_sum[i],
                       .delta = work_.delta[i - begin_],
                       .inverse_divisor = 1.0f / head_.divisor,
                       .gate = head_.gates[b],
                       .threshold = threshold_,
                       .kept = kept_,
                       .key = first};
    if (head_.dropout > 0.0) {
      row.dropout = MakeDropoutRow(head_.dropout_seed, i, b);
    }
    const SomeElements elements = group.ElementsOf(r, first);
    ClearAround(group.keys[r].range, buffered, rows.weights);
    ClearAround(group.keys[r].range, buffered, rows.gradients);
    FloatVector gate_gradient = hn::Zero(FloatTag());
    if (head_.is_gated) {
      DifferentiateElements</*kGated=*/true>(elements, row, rows,
                                             &gate_gradient);
    } else {
      DifferentiateElements</*kGated=*/false>(elements, row, rows,
                                              &gate_gradient);
    }
    if (head_.is_gated) {
      gate_gradients_[b] += static_cast<double>(
          hn::GetLane(hn::SumOfLanes(FloatTag(), gate_gradient)));
    }
  }

  template <bool kGated>
  HWY_INLINE void DifferentiateElements(const SomeElements& elements,
                                        const RowGradient& row,
                                        const RowsOfGradients& rows,
                                        FloatVector* gate_gradient) {
    if (head_.dropout > 0.0) {
      Differentiate<true, kGated>(elements, row, rows, gate_gradient);
    } else {
      Differentiate<false, kGated>(elements, row, rows, gate_gradient);
    }
  }

  const AttentionHead& head_;
  const int64_t begin_, end_;
  const BackwardInputs& inputs_;
  const BackwardResults& results_;
  const BackwardWorkspace work_;
  const ForwardResults nothing_carried_;
  GroupScores scores_;
  const uint32_t threshold_;  // of dropout
  const float kept_;
  KeyBits bits_;        // of the chunk's keys
  int64_t packed_ = 0;  // the first key of the block that is not
  int64_t packed_queries_;
  double gate_gradients_[2] = {0.0, 0.0};  // of both blocks
};

void BackwardTileImpl(const AttentionHead& head, int64_t begin, int64_t end,
                      const BackwardInputs& inputs,
                      const BackwardResults& results, float* workspace) {
  Backward(head, begin, end, inputs, results, workspace).Run();
}

}  // namespace
}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace etc::kernels {

HWY_EXPORT(BackwardTileImpl);

int64_t BackwardWorkspaceSize(const AttentionHead& head) {
  return BackwardWorkspace(head, nullptr).total;
}

// Whole vectors of packed queries are added to each row.
int64_t RelativeGradientStride(const AttentionHead& head) {
  return RoundUp(head.head_dim + 1, kPadding);
}

void BackwardTile(const AttentionHead& head, int64_t begin, int64_t end,
                  const BackwardInputs& inputs, const BackwardResults& results,
                  float* workspace) {
  HWY_DYNAMIC_DISPATCH(BackwardTileImpl)
  (head, begin, end, inputs, results, workspace);
}

}  // namespace etc::kernels
#endif  // HWY_ONCE
