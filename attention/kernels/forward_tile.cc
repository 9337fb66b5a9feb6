// The forward pass of a tile: online softmax over chunks of keys, six queries
// at a time, so that their scores stay in the first-level cache.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/kernels/forward_tile.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "attention/kernels/attention_tile.h"
#include "attention/kernels/coming_rows-inl.h"
#include "attention/kernels/group_scores-inl.h"
#include "attention/kernels/tile-inl.h"
#include "attention/kernels/tile_sizes.h"
#include "hwy/highway.h"

#ifndef ETC_ATTENTION_KERNELS_FORWARD_WORKSPACE_
#define ETC_ATTENTION_KERNELS_FORWARD_WORKSPACE_
namespace etc::kernels {

struct ForwardWorkspace {
  ForwardWorkspace(const AttentionHead& head, float* begin) : sizes(head) {
    WorkspaceCursor cursor(begin);
    query = cursor.Take(kTileQueries * sizes.head);
    relative_table = cursor.Take(head.head_dim * sizes.relative);
    relative_bias = cursor.Take(sizes.relative);
    relative = cursor.Take(kTileQueries * sizes.relative);
    keys = cursor.Take(head.head_dim * sizes.key_stride);
    values = cursor.Take(sizes.keys * sizes.value);
    scores = cursor.Take(6 * sizes.score_stride);
    relative_stride =
        std::max(sizes.score_stride,
                 RoundUp(2 * head.max_distance + 2 * kPadding, kPadding));
    relative_scores = cursor.Take(6 * relative_stride);
    context = cursor.Take(kTileQueries * sizes.value);
    row_max = cursor.Take(kTileQueries + kPadding);
    row_sum = cursor.Take(kTileQueries + kPadding);
    total = cursor.used();
  }

  TileSizes sizes;
  float* query;           // [queries][head], times 1 / sqrt(d)
  float* relative_table;  // [d][relative]
  float* relative_bias;   // [relative]
  float* relative;        // [queries][relative]
  float* keys;            // [d][key_stride], transposed
  float* values;          // [keys][value]
  float* scores;          // [6][score_stride]
  int64_t relative_stride;
  float* relative_scores;  // [6][relative_stride]: see PrepareRelative
  float* context;          // [queries][value], of exponentials not yet divided
  float* row_max;          // [queries], of scores
  float* row_sum;          // [queries], of exponentials
  int64_t total;
};

}  // namespace etc::kernels
#endif  // ETC_ATTENTION_KERNELS_FORWARD_WORKSPACE_

HWY_BEFORE_NAMESPACE();
namespace etc::kernels::HWY_NAMESPACE {
namespace {

class Forward {
 public:
  HWY_INLINE Forward(const AttentionHead& head, int64_t begin, int64_t end,
                     const ForwardResults& results, float* workspace)
      : head_(head),
        begin_(begin),
        end_(end),
        results_(results),
        work_(head, workspace),
        factor_(ExponentFactor(head)),
        scores_(head, results, begin,
                {.scores = work_.scores,
                 .score_stride = work_.sizes.score_stride,
                 .relative_scores = work_.relative_scores,
                 .relative_stride = work_.relative_stride,
                 .relative = work_.relative,
                 .relative_columns = work_.sizes.relative}),
        packed_queries_(begin),
        finished_(begin) {}

  HWY_INLINE void Run() {
    const int64_t queries = end_ - begin_;
    if (work_.sizes.relative > 0) {
      PackRelativeTransposed(head_, work_.sizes, work_.relative_table);
      PackRelativeBias(head_, work_.sizes, work_.relative_bias);
    }
    FillRun(kLowest, queries + kPadding, work_.row_max);
    FillRun(0.0f, queries + kPadding, work_.row_sum);
    for (int b = 0; b < 2; ++b) {
      ZeroCarried(b);
      AddBlock(b);
    }
    for (int64_t i = finished_; wants_context() && i < end_; ++i) {
      FinishRow(i);
    }
  }

 private:
  HWY_INLINE bool wants_context() const { return results_.context != nullptr; }

  // Scores of keys that are not visible.
  HWY_INLINE void ZeroCarried(int b) {
    const KeyBlock& block = head_.blocks[b];
    const float* const rows = results_.carried[b].rows;
    if (rows == nullptr || rows == results_.previous[b].rows) {
      return;
    }
    for (int64_t i = begin_; i < end_; ++i) {
      ZeroInvisibleScores(block, i, {0, block.keys},
                          ScoreRow(results_.carried[b], block, i));
    }
  }

  HWY_INLINE void AddBlock(int b) {
    const KeyBlock& block = head_.blocks[b];
    hull_ = {0, 0};
    for (int64_t i = begin_; i < end_; ++i) {
      keys_[i - begin_] = RowKeys(block, i, {0, block.keys});
      hull_ = Union(hull_, keys_[i - begin_].range);
    }
    const int64_t groups = (end_ - begin_ + kBlockRows - 1) / kBlockRows;
    ComingRows coming(block, hull_, groups, end_);
    coming.AddByKey(block.key, block.key_stride, head_.head_dim);
    coming.AddByKey(block.value, block.value_stride, head_.value_dim);
    if (b == 0) {
      coming.AddByQuery(head_.query, head_.query_stride, head_.head_dim);
    } else if (wants_context()) {
      // Lines that are written wait for memory as well.
      coming.AddByQuery(results_.context, results_.context_stride,
                        head_.value_dim);
    }
    ForEachChunk(block, hull_,
                 [&](KeyRange chunk) HWY_ATTR { AddChunk(b, chunk, &coming); });
  }

  HWY_INLINE void AddChunk(int b, KeyRange chunk, ComingRows* coming) {
    const KeyBlock& block = head_.blocks[b];
    const bool is_last = b == 1 && chunk.end == hull_.end;
    packed_ = chunk.begin;
    for (int64_t i = begin_; i < end_; i += kBlockRows) {
      QueryGroup group = {.block = b,
                          .first = i,
                          .rows = std::min<int64_t>(kBlockRows, end_ - i)};
      for (int64_t r = 0; r < group.rows; ++r) {
        group.keys[r] = KeysWithin(block, i + r, chunk);
        group.hull = Union(group.hull, group.keys[r].range);
      }
      if (!group.hull.empty()) {
        PackQueriesUpTo(i + group.rows);
        PackKeys(block, chunk, group.hull.end);
        AddGroup(group, chunk, coming);
      }
      if (is_last && wants_context()) {
        for (int64_t r = 0; r < group.rows; ++r) {
          FinishRow(i + r);
        }
        finished_ = i + group.rows;
      }
    }
  }

  HWY_INLINE VisibleKeys KeysWithin(const KeyBlock& block, int64_t i,
                                    KeyRange chunk) const {
    const VisibleKeys& keys = keys_[i - begin_];
    return keys.whole ? VisibleKeys{Intersect(keys.range, chunk), true}
                      : RowKeys(block, i, chunk);
  }

  // Packs the keys of a chunk up to `needed` or beyond.
  HWY_INLINE void PackKeys(const KeyBlock& block, KeyRange chunk,
                           int64_t needed) {
    while (packed_ < needed) {
      const int64_t keys = std::min(kPackedKeys, chunk.end - packed_);
      const int64_t at = packed_ - chunk.begin;
      PackTransposed(block.key + packed_ * block.key_stride, block.key_stride,
                     keys, head_.head_dim, keys, work_.keys + at,
                     work_.sizes.key_stride);
      if (wants_context()) {
        PackRows(block.value + packed_ * block.value_stride, block.value_stride,
                 keys, head_.value_dim, work_.sizes.value, 1.0f,
                 work_.values + at * work_.sizes.value);
      }
      packed_ += keys;
    }
  }

  // Packs queries up to `needed` or beyond.
  HWY_INLINE void PackQueriesUpTo(int64_t needed) {
    const TileSizes& sizes = work_.sizes;
    while (packed_queries_ < needed) {
      const int64_t queries = std::min(kPackedQueries, end_ - packed_queries_);
      const int64_t n = packed_queries_ - begin_;
      float* const packed = work_.query + n * sizes.head;
      PackQueries(head_, sizes, packed_queries_, packed_queries_ + queries,
                  packed);
      if (sizes.relative > 0) {
        RelativeScores(head_, sizes, queries, packed, work_.relative_table,
                       work_.relative_bias,
                       work_.relative + n * sizes.relative);
      }
      packed_queries_ += queries;
    }
  }

  HWY_INLINE void AddGroup(const QueryGroup& group, KeyRange chunk,
                           ComingRows* coming) {
    const TileSizes& sizes = work_.sizes;
    const KeyRange hull = group.hull;
    const int64_t offset = hull.begin - chunk.begin;
    const int64_t n = group.first - begin_;
    for (int64_t r = 0; r < group.rows; ++r) {
      scores_.PrepareRelative(group, r);
    }
    MultiplyRowGroup</*kAdd=*/false>(
        group.rows, hull.size(), {work_.query + n * sizes.head, sizes.head, 1},
        {work_.keys + offset, sizes.key_stride}, head_.head_dim, work_.scores,
        sizes.score_stride,
        ScoresAhead(results_.previous[group.block], head_.blocks[group.block],
                    group.first, group.rows, hull));
    scores_.AddLinks(group);
    HWY_ALIGN float largest[kPadding];
    FillRun(kLowest, kPadding, largest);
    for (int64_t r = 0; r < group.rows; ++r) {
      largest[r] = scores_.CompleteRow(group, r);
    }
    if (!wants_context()) {
      return;
    }
    RaiseMax(group, largest);
    for (int64_t r = 0; r < group.rows; ++r) {
      work_.row_sum[n + r] +=
          scores_.ExponentiateRow(group, r, work_.row_max[n + r]);
    }
    bool& has_context = has_context_[n / kBlockRows];
    const auto multiply = has_context ? &MultiplyRowGroup</*kAdd=*/true>
                                      : &MultiplyRowGroup</*kAdd=*/false>;
    multiply(group.rows, sizes.value, {work_.scores, sizes.score_stride, 1},
             {work_.values + offset * sizes.value, sizes.value}, hull.size(),
             work_.context + n * sizes.value, sizes.value,
             coming->Next(packed_,
                          group.block == 0 ? packed_queries_ : group.first));
    has_context = true;
  }

  // Brings what the rows had before to their new maximum. `largest` has
  // kPadding elements, kLowest behind the rows of the group.
  HWY_INLINE void RaiseMax(const QueryGroup& group, const float* largest) {
    const FloatTag tag;
    const int64_t n = group.first - begin_;
    const FloatVector factor = hn::Set(tag, factor_);
    HWY_ALIGN float changes[kPadding];
    bool raised = false;
    for (int64_t r = 0; r < kBlockRows; r += Lanes()) {
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
    for (int64_t r = 0; raised && r < group.rows; ++r) {
      ScaleRun(changes[r], work_.sizes.value,
               work_.context + (n + r) * work_.sizes.value);
    }
  }

  HWY_INLINE void FinishRow(int64_t i) {
    const int64_t n = i - begin_;
    const float sum = work_.row_sum[n];
    if (!has_context_[n / kBlockRows]) {
      FillRun(0.0f, work_.sizes.value, work_.context + n * work_.sizes.value);
    }
    // Not sum > 0, so that NaN goes on.
    const float inverse = sum == 0.0f ? 0.0f : 1.0f / sum;
    PackRow(work_.context + n * work_.sizes.value, head_.value_dim,
            head_.value_dim, inverse,
            results_.context + i * results_.context_stride);
    results_.row_max[i] = factor_ * work_.row_max[n];
    results_.row_inverse_sum[i] = inverse;
  }

  const AttentionHead& head_;
  const int64_t begin_, end_;
  const ForwardResults& results_;
  const ForwardWorkspace work_;
  const float factor_;
  GroupScores scores_;
  // Of the block at hand: the keys that any query sees, and the first that is
  // not yet packed.
  KeyRange hull_ = {0, 0};
  int64_t packed_ = 0;
  // The first queries that are not yet packed, and not finished.
  int64_t packed_queries_;
  int64_t finished_;
  // Whether anything has been written to the context of six queries.
  bool has_context_[kTileQueries / kBlockRows] = {};
  VisibleKeys keys_[kTileQueries];  // of each query, in the block at hand
};

void ForwardTileImpl(const AttentionHead& head, int64_t begin, int64_t end,
                     const ForwardResults& results, float* workspace) {
  Forward(head, begin, end, results, workspace).Run();
}

}  // namespace
}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace etc::kernels {

HWY_EXPORT(ForwardTileImpl);

int64_t ForwardWorkspaceSize(const AttentionHead& head) {
  return ForwardWorkspace(head, nullptr).total;
}

void ForwardTile(const AttentionHead& head, int64_t begin, int64_t end,
                 const ForwardResults& results, float* workspace) {
  HWY_DYNAMIC_DISPATCH(ForwardTileImpl)(head, begin, end, results, workspace);
}

}  // namespace etc::kernels
#endif  // HWY_ONCE
