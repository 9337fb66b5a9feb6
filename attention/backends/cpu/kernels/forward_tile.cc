// The forward pass of a tile: online softmax over panels of keys that are
// packed together, two at a time, for a few queries at a time, so that their
// scores stay in the first-level cache.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/backends/cpu/kernels/forward_tile.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "attention/backends/cpu/kernels/attention_tile.h"
#include "attention/backends/cpu/kernels/flush_denormals.h"
#include "attention/backends/cpu/kernels/forward_products-inl.h"
#include "attention/backends/cpu/kernels/forward_workspace.h"
#include "attention/backends/cpu/kernels/group_scores-inl.h"
#include "attention/backends/cpu/kernels/invisible_keys-inl.h"
#include "attention/backends/cpu/kernels/key_bits-inl.h"
#include "attention/backends/cpu/kernels/matrix-inl.h"
#include "attention/backends/cpu/kernels/packing-inl.h"
#include "attention/backends/cpu/kernels/prefetch_rows-inl.h"
#include "attention/backends/cpu/kernels/tile-inl.h"
#include "attention/backends/cpu/kernels/tile_sizes.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace etc::kernels::HWY_NAMESPACE {
namespace {

// Products: FloatForwardProducts or RoundedForwardProducts.
template <typename Products>
class Forward {
 public:
  static constexpr int64_t kGroupRows = Products::kGroupRows;

  HWY_INLINE Forward(const AttentionHead& head, int64_t begin, int64_t end,
                     const ForwardResults& results, float* workspace)
      : head_(head),
        begin_(begin),
        end_(end),
        results_(results),
        work_(head, workspace),
        products_(head, work_.sizes, work_.operands),
        factor_(ExponentFactor(head)),
        scores_(head, results, work_.sizes),
        packed_queries_(begin) {}

  HWY_INLINE void Begin() {
    products_.Begin();
    for (int b = 0; b < 2; ++b) {
      const KeyBlock& block = head_.blocks[b];
      ZeroInvisibleRows(block, begin_, end_, {0, block.keys},
                        results_.previous[b], results_.carried[b]);
      chunks_[b] = ChunksOf(block, Hull(block));
    }
    panels_left_ = chunks_[0].count + chunks_[1].count;
    passes_ = std::max<int64_t>((panels_left_ + 1) / 2, 1);
    slots_ = passes_ == 1 ? kPackedQueries : kTileQueries;
  }

  HWY_INLINE void End() { products_.End(); }

  HWY_INLINE int64_t passes() const { return passes_; }

  // Two panels of keys for all queries, or the last one. Gives the rows to
  // prefetch meanwhile.
  HWY_INLINE PrefetchRows BeginPass(int64_t pass) {
    is_first_ = pass == 0;
    panel_count_ = std::min<int64_t>(panels_left_, 2);
    panels_left_ -= panel_count_;
    for (int64_t p = 0; p < panel_count_; ++p) {
      panels_[p] = PanelOf(2 * pass + p, p);
      bits_[p].Begin(panels_[p].keys);
    }
    PrefetchRows prefetch = PrefetchKeys();
    if (is_first_) {
      prefetch.AddByQuery(head_.query, head_.query_stride, head_.head_dim);
    }
    if (pass + 1 == passes_ && wants_context()) {
      // Lines that are written wait for memory as well.
      prefetch.AddByQuery(results_.context, results_.context_stride,
                          head_.value_dim);
    }
    return prefetch;
  }

  // Computes the attention of queries [first, first + rows), at most
  // kGroupRows, to the panels' keys.
  HWY_INLINE void AddGroup(int64_t first, int64_t rows,
                           PrefetchRows* prefetch) {
    if (is_first_) {
      ClearSums(first);
    }
    QueryGroup groups[2];
    KeyPanel* panels[2];
    int64_t count = 0;
    for (int64_t p = 0; p < panel_count_; ++p) {
      SetGroup(panels_[p], first, rows, &bits_[p], &groups[count]);
      if (!groups[count].hull.empty()) {
        panels[count++] = &panels_[p];
      }
    }
    if (count == 0) {
      return;
    }
    PackQueriesUpTo(first + rows);
    for (int64_t p = 0; p < count; ++p) {
      const QueryGroup& group = groups[p];
      const KeyPanel& panel = *panels[p];
      PackKeys(group, panels[p]);
      scores_.PrepareRelative(group);
      products_.MultiplyKeys(
          SlotOf(first), rows, panel.number,
          group.hull.begin - panel.keys.begin, group.hull.size(),
          panel.keys.size(),
          ScorePrefetch(results_.previous[group.block],
                        head_.blocks[group.block], first, rows, group.hull),
          group.scores);
      scores_.AddLinks(group);
    }
    HWY_ALIGN float largest[kPadding];
    FillRun(kLowest, kPadding, largest);
    for (int64_t r = 0; r < rows; ++r) {
      FloatVector most = hn::Set(FloatTag(), kLowest);
      for (int64_t p = 0; p < count; ++p) {
        scores_.CompleteRow(groups[p], r, &most);
      }
      largest[r] = hn::GetLane(hn::MaxOfLanes(FloatTag(), most));
    }
    if (wants_context()) {
      RaiseMax(first, rows, largest);
      AddWeightedValues(groups, panels, count, prefetch);
    }
  }

  // Writes, after the last pass, the context and the statistics for the
  // backward pass.
  HWY_INLINE void FinishGroup(int64_t first, int64_t rows) {
    for (int64_t r = 0; wants_context() && r < rows; ++r) {
      FinishRow(first + r);
    }
  }

 private:
  // Keys that are packed together: all of a chunk that any query sees or, with
  // a window, those of them that come next.
  struct KeyPanel {
    int block = 0;
    int64_t number = 0;  // of its packed keys, 0 or 1
    KeyRange keys = {0, 0};
    int64_t packed = 0;  // keys before this one are, or are not needed any more
  };

  HWY_INLINE bool wants_context() const { return results_.context != nullptr; }

  // A range that holds all keys which any query sees.
  HWY_INLINE KeyRange Hull(const KeyBlock& block) const {
    const KeyRange all = {0, block.keys};
    return block.window.is_restricted()
               ? Intersect(
                     Union(Window(block, begin_), Window(block, end_ - 1)), all)
               : RowsHull(block, begin_, end_, all);
  }

  // The n-th of the chunks of both blocks.
  HWY_INLINE KeyPanel PanelOf(int64_t n, int64_t number) const {
    const int b = n < chunks_[0].count ? 0 : 1;
    const KeyRange keys = chunks_[b][b == 0 ? n : n - chunks_[0].count];
    return {.block = b, .number = number, .keys = keys, .packed = keys.begin};
  }

  HWY_INLINE void ClearSums(int64_t first) {
    const int64_t n = SlotOf(first);
    FillRun(kLowest, kPadding, work_.row_max + n);
    FillRun(0.0f, kPadding, work_.row_sum + n);
    has_context_[n / kGroupRows] = false;
  }

  // Prefetches the keys after those packed: of a window, or for the next
  // panels.
  HWY_INLINE PrefetchRows PrefetchKeys() {
    streamed_ = 0;
    if (panel_count_ > 1 &&
        !head_.blocks[panels_[0].block].window.is_restricted()) {
      streamed_ = 1;
    }
    const int b = panels_[streamed_].block;
    const KeyBlock& block = head_.blocks[b];
    PrefetchRows prefetch(block, panel_count_, chunks_[b].all.end, kGroupRows,
                          begin_, end_);
    prefetch.AddByKey(block.key, block.key_stride, head_.head_dim);
    prefetch.AddByKey(block.value, block.value_stride, head_.value_dim);
    return prefetch;
  }

  // The slot of a query in the workspace.
  HWY_INLINE int64_t SlotOf(int64_t i) const { return (i - begin_) % slots_; }

  // Packs the keys of a panel that `group` needs, or more.
  HWY_INLINE void PackKeys(const QueryGroup& group, KeyPanel* panel) {
    const KeyBlock& block = head_.blocks[panel->block];
    const KeyRange keys = panel->keys;
    if (block.window.is_restricted()) {
      const int64_t skipped = Window(block, group.first).begin - keys.begin;
      panel->packed = std::max(panel->packed,
                               keys.begin + skipped / Products::kKeyMultiple *
                                                Products::kKeyMultiple);
    }
    const int64_t needed =
        keys.begin +
        products_.KeysNeeded(group.hull.end - keys.begin, keys.size());
    while (panel->packed < needed) {
      const int64_t first = panel->packed;
      const int64_t count = std::min(kPackedKeys, keys.end - first);
      products_.PackKeys(block, first, count, panel->number, first - keys.begin,
                         keys.size(), wants_context());
      panel->packed += count;
    }
  }

  // Packs queries up to `needed` or beyond.
  HWY_INLINE void PackQueriesUpTo(int64_t needed) {
    while (packed_queries_ < needed) {
      const int64_t queries = std::min(kPackedQueries, end_ - packed_queries_);
      const int64_t n = SlotOf(packed_queries_);
      products_.PackQueries(packed_queries_, queries, n,
                            work_.relative + n * work_.sizes.relative);
      packed_queries_ += queries;
    }
  }

  HWY_INLINE void SetGroup(const KeyPanel& panel, int64_t first, int64_t rows,
                           KeyBits* bits, QueryGroup* group) const {
    group->block = panel.block;
    group->first = first;
    group->rows = rows;
    group->relative = work_.relative + SlotOf(first) * work_.sizes.relative;
    group->scores = work_.scores[panel.number];
    group->relative_scores = work_.relative_scores[panel.number];
    group->SetKeys(head_.blocks[panel.block], panel.keys,
                   Products::kKeyMultiple, bits);
  }

  // Scores to weights, times values.
  HWY_INLINE void AddWeightedValues(const QueryGroup* groups,
                                    KeyPanel* const* panels, int64_t count,
                                    PrefetchRows* prefetch) {
    const int64_t first = groups[0].first;
    const int64_t n = SlotOf(first);
    for (int64_t r = 0; r < groups[0].rows; ++r) {
      FloatVector sum = hn::Zero(FloatTag());
      for (int64_t p = 0; p < count; ++p) {
        scores_.ExponentiateRow(groups[p], r, work_.row_max[n + r], &sum);
      }
      work_.row_sum[n + r] += hn::GetLane(hn::SumOfLanes(FloatTag(), sum));
    }
    for (int64_t p = 0; p < count; ++p) {
      AddValues(groups[p], *panels[p],
                prefetch->Next(panels_[streamed_].packed,
                               is_first_ ? packed_queries_ : first));
    }
  }

  HWY_INLINE void AddValues(const QueryGroup& group, const KeyPanel& panel,
                            const Prefetch& prefetch) {
    const int64_t n = SlotOf(group.first);
    bool& has_context = has_context_[n / kGroupRows];
    products_.MultiplyValues(group.scores, group.rows, panel.number,
                             group.hull.begin - panel.keys.begin,
                             group.hull.size(), has_context, prefetch,
                             work_.context + n * work_.sizes.value);
    has_context = true;
  }

  // Rescales the sums of the rows to their new maximum. `largest` has kPadding
  // elements, kLowest behind `rows`.
  HWY_INLINE void RaiseMax(int64_t first, int64_t rows, const float* largest) {
    const FloatTag tag;
    const int64_t n = SlotOf(first);
    const FloatVector factor = hn::Set(tag, factor_);
    HWY_ALIGN float changes[kPadding];
    bool raised = false;
    for (int64_t r = 0; r < kGroupRows; r += Lanes()) {
      const FloatVector old_max = hn::LoadU(tag, work_.row_max + n + r);
      const FloatVector sum = hn::LoadU(tag, work_.row_sum + n + r);
      // Not Max, which on some targets makes a number of NaN.
      const auto is_larger = hn::Gt(hn::Load(tag, largest + r), old_max);
      const FloatVector new_max =
          hn::IfThenElse(is_larger, hn::Load(tag, largest + r), old_max);
      const FloatVector change =
          Exp2(hn::Mul(factor, hn::Sub(old_max, new_max)));
      hn::StoreU(new_max, tag, work_.row_max + n + r);
      hn::StoreU(hn::Mul(change, sum), tag, work_.row_sum + n + r);
      hn::Store(change, tag, changes + r);
      raised =
          raised ||
          !hn::AllFalse(tag, hn::And(is_larger, hn::Ne(sum, hn::Zero(tag))));
    }
    for (int64_t r = 0; raised && r < rows; ++r) {
      ScaleRun(changes[r], work_.sizes.value,
               work_.context + (n + r) * work_.sizes.value);
    }
  }

  HWY_INLINE void FinishRow(int64_t i) {
    const int64_t n = SlotOf(i);
    const float sum = work_.row_sum[n];
    // Not sum > 0, so that NaN propagates.
    const float inverse = sum == 0.0f ? 0.0f : 1.0f / sum;
    float* const context = results_.context + i * results_.context_stride;
    if (has_context_[n / kGroupRows]) {
      PackRow(work_.context + n * work_.sizes.value, head_.value_dim,
              head_.value_dim, inverse, context);
    } else {
      FillRun(0.0f, head_.value_dim, context);
    }
    results_.row_max[i] = work_.row_max[n];
    results_.row_inverse_sum[i] = inverse;
  }

  const AttentionHead& head_;
  const int64_t begin_, end_;
  const ForwardResults& results_;
  const ForwardWorkspace work_;
  Products products_;
  const float factor_;
  GroupScores scores_;
  Chunks chunks_[2];    // of each block
  KeyPanel panels_[2];  // packed at present
  KeyBits bits_[2];     // of their keys
  int64_t panel_count_ = 0;
  int64_t panels_left_ = 0;  // for the passes that follow
  int64_t passes_ = 0;
  bool is_first_ = false;   // of the passes
  int64_t streamed_ = 0;    // the panel whose block is prefetched
  int64_t slots_ = 0;       // queries that the workspace holds at a time
  int64_t packed_queries_;  // the first query that is not yet packed
  // True if anything has been written to the context of a group.
  bool has_context_[kTileQueries / kGroupRows] = {};
};

template <typename Products>
HWY_INLINE void RunForward(const AttentionHead& head, int64_t begin,
                           int64_t end, const ForwardResults& results,
                           float* workspace) {
  Forward<Products> tile(head, begin, end, results, workspace);
  tile.Begin();
  for (int64_t pass = 0; pass < tile.passes(); ++pass) {
    PrefetchRows prefetch = tile.BeginPass(pass);
    for (int64_t i = begin; i < end; i += Products::kGroupRows) {
      const int64_t rows = std::min<int64_t>(Products::kGroupRows, end - i);
      tile.AddGroup(i, rows, &prefetch);
      if (pass + 1 == tile.passes()) {
        tile.FinishGroup(i, rows);
      }
    }
  }
  tile.End();
}

void ForwardTileImpl(const AttentionHead& head, int64_t begin, int64_t end,
                     const ForwardResults& results, float* workspace) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  if (head.rounded != nullptr) {
    return RunForward<RoundedForwardProducts>(head, begin, end, results,
                                              workspace);
  }
#endif
  RunForward<FloatForwardProducts>(head, begin, end, results, workspace);
}

int64_t ForwardWorkspaceSizeImpl(const AttentionHead& head) {
  const ForwardWorkspace work(head, nullptr);
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  if (head.rounded != nullptr) {
    return work.total + RoundedForwardProducts::WorkspaceSize(work.sizes);
  }
#endif
  return work.total + FloatForwardProducts::WorkspaceSize(head, work.sizes);
}

}  // namespace
}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace etc::kernels {

HWY_EXPORT(ForwardTileImpl);
HWY_EXPORT(ForwardWorkspaceSizeImpl);

int64_t ForwardWorkspaceSize(const AttentionHead& head) {
  return HWY_DYNAMIC_DISPATCH(ForwardWorkspaceSizeImpl)(head);
}

void ForwardTile(const AttentionHead& head, int64_t begin, int64_t end,
                 const ForwardResults& results, float* workspace) {
  const FlushDenormals flush_denormals;
  HWY_DYNAMIC_DISPATCH(ForwardTileImpl)(head, begin, end, results, workspace);
}

}  // namespace etc::kernels
#endif  // HWY_ONCE
