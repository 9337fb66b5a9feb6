// The backward pass of a tile. Probabilities are computed again from the
// carried scores, or if there are none from queries and keys:
//
//   p = softmax(S / divisor)             w = p with dropout
//   dp = dropout of (dO . V^T)           dS = p (dp - dO . O) / divisor + dS'
//
// dS' being the gradient of the carried scores, and dS that of the previous
// ones; then dV += w^T dO, dq += dS K, dK += dS^T q, and the same for the
// relative table, with dS added up by id. A gated head with own scores s and
// previous ones S - s has p = softmax(s + g (S - s)), and the gradient of the
// latter has g before its first term: see score_gradients-inl.h.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/backends/cpu/kernels/backward_tile.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "attention/backends/cpu/kernels/attention_tile.h"
#include "attention/backends/cpu/kernels/backward_products-inl.h"
#include "attention/backends/cpu/kernels/backward_workspace.h"
#include "attention/backends/cpu/kernels/flush_denormals.h"
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

// Products: FloatBackwardProducts or RoundedBackwardProducts.
template <typename Products>
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
        products_(head, work_),
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
    products_.Begin();
    if (RelativeScoresAreNeeded()) {
      products_.PackTable();
    }
    for (int b = 0; b < 2; ++b) {
      if (!hulls[b].empty()) {
        AddBlock(b, hulls[b]);
      }
    }
    PackQueriesUpTo(end_);
    if (work_.sizes.relative > 0) {
      products_.AddRelativeProducts(end_ - begin_, results_.relative);
    }
    products_.End();
    AddToPieces(results_.query, {begin_, end_}, ScoreScale(head_),
                work_.query_gradient, work_.sizes.head, head_.head_dim);
    for (int b = 0; head_.is_gated && b < 2; ++b) {
      results_.gates[b] += static_cast<float>(gate_gradients_[b]);
    }
  }

 private:
  static constexpr int64_t kGroupRows = Products::kGroupRows;
  static constexpr int64_t kQueriesOfStep = Products::kQueriesOfStep;

  HWY_INLINE bool RelativeScoresAreNeeded() const {
    return work_.sizes.relative > 0 && ScoresAreNeeded(0);
  }

  // Packs the operands by query, up to `needed` or beyond, and clears the sums
  // by query.
  HWY_INLINE void PackQueriesUpTo(int64_t needed) {
    const TileSizes& sizes = work_.sizes;
    while (packed_queries_ < needed) {
      const int64_t first = packed_queries_;
      const int64_t queries = std::min(Products::kQueriesToPack, end_ - first);
      const int64_t n = first - begin_;
      products_.PackQueries(first, queries, n, inputs_,
                            RelativeScoresAreNeeded());
      for (int64_t i = first; i < first + queries; ++i) {
        work_.delta[i - begin_] = products_.ContextDot(
            i - begin_, inputs_.context + i * inputs_.context_stride);
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
    PrefetchRows prefetch(block, /*chunks=*/1, hull.end, kGroupRows, begin_,
                          end_);
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
    products_.BeginChunk();
    for (int64_t i = begin_; i < end_; i += kQueriesOfStep) {
      AddQueries(b, chunk, i, std::min(i + kQueriesOfStep, end_), prefetch);
    }
    // Every key of a chunk is seen by some query or lies between two such keys.
    PackKeys(b, chunk, chunk.end);
    products_.AddKeySums(chunk, results_.key[b], results_.value[b]);
  }

  // Packs the keys of a chunk up to `needed` or beyond, and clears the sums by
  // key.
  HWY_INLINE void PackKeys(int b, KeyRange chunk, int64_t needed) {
    while (packed_ < needed) {
      const int64_t keys = std::min(kPackedKeys, chunk.end - packed_);
      products_.PackKeys(head_.blocks[b], packed_, keys, packed_ - chunk.begin,
                         chunk.size(), ScoresAreNeeded(b));
      packed_ += keys;
    }
  }

  // Queries [begin, end), at most kQueriesOfStep.
  HWY_INLINE void AddQueries(int b, KeyRange chunk, int64_t begin, int64_t end,
                             PrefetchRows* prefetch) {
    const KeyBlock& block = head_.blocks[b];
    KeyRange hull = RowsHull(block, begin, end, chunk);
    if (hull.empty()) {
      return;
    }
    hull.begin -= (hull.begin - chunk.begin) % Products::kKeyMultiple;
    PackQueriesUpTo(end);
    PackKeys(b, chunk,
             chunk.begin +
                 products_.KeysNeeded(hull.end - chunk.begin, chunk.size()));
    KeyRange group_hulls[(kQueriesOfStep + kGroupRows - 1) / kGroupRows];
    for (int64_t i = begin; i < end; i += kGroupRows) {
      QueryGroup group;
      group.block = b;
      group.first = i;
      group.rows = std::min<int64_t>(kGroupRows, end - i);
      group.relative = work_.relative + (i - begin_) * work_.sizes.relative;
      group.scores = work_.scores;
      group.relative_scores = work_.relative_scores;
      group.SetKeys(block, chunk, Products::kKeyMultiple, &bits_);
      group_hulls[(i - begin) / kGroupRows] = group.hull;
      const StepGroup of_step = {.n = i - begin_,
                                 .row = i - begin,
                                 .rows = group.rows,
                                 .hull = group.hull,
                                 .kept = hull,
                                 .at = group.hull.begin - chunk.begin};
      if (group.hull.empty()) {
        products_.ClearRows(of_step);
      } else {
        AddGroup(group, of_step, prefetch);
      }
    }
    products_.AddKeyGradients(hull, hull.begin - chunk.begin, begin - begin_,
                              end - begin, group_hulls);
  }

  // Computes weights and score gradients of a group, and the gradients of its
  // queries.
  HWY_INLINE void AddGroup(const QueryGroup& group, const StepGroup& of_step,
                           PrefetchRows* prefetch) {
    const int b = group.block;
    const TileSizes& sizes = work_.sizes;
    const KeyRange hull = group.hull;
    products_.MultiplyValues(of_step,
                             ScorePrefetch(inputs_.carried[b], head_.blocks[b],
                                           group.first, group.rows, hull),
                             work_.products);
    if (ScoresAreNeeded(b)) {
      ScoreAgain(group, of_step);
    }
    for (int64_t r = 0; r < group.rows; ++r) {
      DifferentiateRow(group, of_step, r);
    }
    products_.AddQueryGradients(of_step,
                                prefetch->Next(packed_, packed_queries_));
    for (int64_t r = 0; r < group.rows; ++r) {
      AddRelativeGradient(
          head_.blocks[b], head_.max_distance, group.first + r, hull,
          products_.Gradients(of_step, r) + hull.begin - of_step.kept.begin,
          work_.relative_gradient + (of_step.n + r) * sizes.relative);
    }
  }

  // This layer's own scores, to the bit as the forward pass had them: a score
  // that is rounded otherwise has another probability than the one that the
  // sum of exponentials holds.
  HWY_INLINE void ScoreAgain(const QueryGroup& group,
                             const StepGroup& of_step) {
    const int b = group.block;
    scores_.PrepareRelative(group);
    products_.MultiplyKeys(
        of_step,
        ScorePrefetch(inputs_.carried_gradient[b], head_.blocks[b], group.first,
                      group.rows, group.hull),
        group.scores);
    scores_.AddLinks(group);
    FloatVector most = hn::Set(FloatTag(), kLowest);
    for (int64_t r = 0; r < group.rows; ++r) {
      scores_.CompleteRow(group, r, &most);
    }
  }

  HWY_INLINE void DifferentiateRow(const QueryGroup& group,
                                   const StepGroup& of_step, int64_t r) {
    const int b = group.block;
    const int64_t i = group.first + r;
    const KeyBlock& block = head_.blocks[b];
    const int64_t first = of_step.kept.begin;
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
        .weights = products_.Weights(of_step, r),
        .gradients = products_.Gradients(of_step, r),
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
    ClearAround(group.keys[r].range, of_step.kept, rows.weights);
    ClearAround(group.keys[r].range, of_step.kept, rows.gradients);
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
  Products products_;
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
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  if (head.rounded != nullptr) {
    Backward<RoundedBackwardProducts>(head, begin, end, inputs, results,
                                      workspace)
        .Run();
    return;
  }
#endif
  Backward<FloatBackwardProducts>(head, begin, end, inputs, results, workspace)
      .Run();
}

int64_t BackwardWorkspaceSizeImpl(const AttentionHead& head) {
  const BackwardWorkspace work(head, nullptr);
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  if (head.rounded != nullptr) {
    return work.total + RoundedBackwardProducts::WorkspaceSize(work.sizes);
  }
#endif
  return work.total + FloatBackwardProducts::WorkspaceSize(head, work.sizes);
}

}  // namespace
}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace etc::kernels {

HWY_EXPORT(BackwardTileImpl);
HWY_EXPORT(BackwardWorkspaceSizeImpl);

int64_t BackwardWorkspaceSize(const AttentionHead& head) {
  return HWY_DYNAMIC_DISPATCH(BackwardWorkspaceSizeImpl)(head);
}

// Whole vectors of packed queries are added to each row.
int64_t RelativeGradientStride(int64_t head_dim) {
  return RoundUp(head_dim + 1, kPadding);
}

void BackwardTile(const AttentionHead& head, int64_t begin, int64_t end,
                  const BackwardInputs& inputs, const BackwardResults& results,
                  float* workspace) {
  const FlushDenormals flush_denormals;
  HWY_DYNAMIC_DISPATCH(BackwardTileImpl)
  (head, begin, end, inputs, results, workspace);
}

}  // namespace etc::kernels
#endif  // HWY_ONCE
