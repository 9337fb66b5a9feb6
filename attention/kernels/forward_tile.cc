// The forward pass of a tile: online softmax over chunks of keys, six queries
// at a time, so that their scores stay in the first-level cache.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/kernels/forward_tile.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "attention/kernels/attention_tile.h"
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
    relative = cursor.Take(kTileQueries * sizes.relative);
    keys = cursor.Take(head.head_dim * kKeyStride);
    values = cursor.Take(kChunkKeys * sizes.value);
    scores = cursor.Take(6 * kKeyStride);
    dropout = cursor.Take(kKeyStride);
    context = cursor.Take(kTileQueries * sizes.value);
    row_max = cursor.Take(kTileQueries);
    row_sum = cursor.Take(kTileQueries);
    total = cursor.used();
  }

  TileSizes sizes;
  float* query;           // [queries][head], times 1 / sqrt(d)
  float* relative_table;  // [d][relative]
  float* relative;        // [queries][relative]
  float* keys;            // [d][kKeyStride], transposed
  float* values;          // [keys][value]
  float* scores;          // [6][kKeyStride]
  float* dropout;         // [kKeyStride]
  float* context;         // [queries][value], of exponentials not yet divided
  float* row_max;         // [queries], of scores
  float* row_sum;         // [queries], of exponentials
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
        factor_(ExponentFactor(head)) {}

  HWY_INLINE void Run() {
    const int64_t queries = end_ - begin_;
    PackQueries(head_, work_.sizes, begin_, end_, work_.query);
    RelativeScores(head_, work_.sizes, queries, work_.query,
                   work_.relative_table, work_.relative);
    FillRun(0.0f, queries * work_.sizes.value, work_.context);
    FillRun(kLowest, queries, work_.row_max);
    FillRun(0.0f, queries, work_.row_sum);
    for (int b = 0; b < 2; ++b) {
      ZeroCarried(b);
      ForEachChunk(head_.blocks[b], begin_, end_, {0, head_.blocks[b].keys},
                   [&](KeyRange chunk) HWY_ATTR { AddChunk(b, chunk); });
    }
    for (int64_t i = begin_; wants_context() && i < end_; ++i) {
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

  HWY_INLINE void AddChunk(int b, KeyRange chunk) {
    const KeyBlock& block = head_.blocks[b];
    const int64_t keys = chunk.size();
    PackTransposed(block.key + chunk.begin * block.key_stride, block.key_stride,
                   keys, head_.head_dim, RoundUp(keys, kPadding) + kPadding,
                   work_.keys, kKeyStride);
    if (wants_context()) {
      PackRows(block.value + chunk.begin * block.value_stride,
               block.value_stride, keys, head_.value_dim, work_.sizes.value,
               1.0f, work_.values);
    }
    for (int64_t i = begin_; i < end_; i += kBlockRows) {
      const int64_t rows = std::min<int64_t>(kBlockRows, end_ - i);
      const KeyRange hull = RowsHull(block, i, i + rows, chunk);
      if (!hull.empty()) {
        AddGroup(b, i, rows, chunk, hull);
      }
    }
  }

  // Queries i to i + rows, keys `hull` of a packed chunk.
  HWY_INLINE void AddGroup(int b, int64_t i, int64_t rows, KeyRange chunk,
                           KeyRange hull) {
    const TileSizes& sizes = work_.sizes;
    const int64_t offset = hull.begin - chunk.begin;
    const int64_t first = i - begin_;
    for (int64_t r = 0; r < rows; ++r) {
      PrefetchScores(results_.previous[b], head_.blocks[b], i + r, hull);
      FillRelativeScores(head_.blocks[b], head_.max_distance, i + r, hull,
                         work_.relative + (first + r) * sizes.relative,
                         work_.scores + r * kKeyStride);
    }
    MultiplyAddRowGroup(rows, hull.size(),
                        {work_.query + first * sizes.head, sizes.head, 1},
                        {work_.keys + offset, kKeyStride}, head_.head_dim,
                        work_.scores, kKeyStride);
    if (!wants_context()) {
      return CarryGroup(b, i, rows, hull);
    }
    for (int64_t r = 0; r < rows; ++r) {
      Exponentiate(b, i + r, hull, work_.scores + r * kKeyStride);
    }
    MultiplyAddRowGroup(rows, sizes.value, {work_.scores, kKeyStride, 1},
                        {work_.values + offset * sizes.value, sizes.value},
                        hull.size(), work_.context + first * sizes.value,
                        sizes.value);
  }

  // Scores alone.
  HWY_INLINE void CarryGroup(int b, int64_t i, int64_t rows, KeyRange hull) {
    const KeyBlock& block = head_.blocks[b];
    for (int64_t r = 0; r < rows; ++r) {
      float* const at_key_0 = work_.scores + r * kKeyStride - hull.begin;
      ForEachRun(block.visible, i + r, Intersect(hull, Window(block, i + r)),
                 [&](int64_t begin, int64_t end)
                     HWY_ATTR { CarryRun(b, i + r, begin, end, at_key_0); });
    }
  }

  // One row of scores, at key hull.begin, to exponentials; what the row had
  // before is brought to the new maximum.
  HWY_INLINE void Exponentiate(int b, int64_t i, KeyRange hull, float* row) {
    const KeyBlock& block = head_.blocks[b];
    const KeyRange range = Intersect(hull, Window(block, i));
    float* const at_key_0 = row - hull.begin;
    ZeroInvisible(block, i, hull, at_key_0);
    if (range.empty()) {
      return;
    }
    const int64_t n = i - begin_;
    const float old_max = work_.row_max[n];
    float new_max = old_max;
    ForEachRun(
        block.visible, i, range, [&](int64_t begin, int64_t end) HWY_ATTR {
          new_max = std::max(new_max, CarryRun(b, i, begin, end, at_key_0));
        });
    const float shift = factor_ * new_max;
    if (new_max > old_max && work_.row_sum[n] != 0.0f) {
      const float change =
          hn::GetLane(Exp2(hn::Set(FloatTag(), factor_ * old_max - shift)));
      ScaleRun(change, work_.sizes.value,
               work_.context + n * work_.sizes.value);
      work_.row_sum[n] *= change;
    }
    work_.row_max[n] = new_max;
    ForEachRun(
        block.visible, i, range, [&](int64_t begin, int64_t end) HWY_ATTR {
          work_.row_sum[n] +=
              ExponentiateRun(end - begin, factor_, shift, at_key_0 + begin);
          if (head_.dropout > 0.0f) {
            Drop(b, i, begin, end, at_key_0);
          }
        });
  }

  // Adds what was carried, carries on; the largest score.
  HWY_INLINE float CarryRun(int b, int64_t i, int64_t begin, int64_t end,
                            float* at_key_0) {
    const KeyBlock& block = head_.blocks[b];
    float* const carried = ScoreRow(results_.carried[b], block, i);
    if (carried == nullptr) {
      return RunMax(at_key_0 + begin, end - begin);
    }
    const float* const previous = ScoreRow(results_.previous[b], block, i);
    float* const row = at_key_0 + begin;
    if (previous == nullptr) {
      return AddPrevious<Carry::kScores>(nullptr, end - begin, row,
                                         carried + begin);
    }
    return results_.subtract
               ? AddPrevious<Carry::kPreviousMinusScores>(
                     previous + begin, end - begin, row, carried + begin)
               : AddPrevious<Carry::kPreviousPlusScores>(
                     previous + begin, end - begin, row, carried + begin);
  }

  HWY_INLINE void Drop(int b, int64_t i, int64_t begin, int64_t end,
                       float* at_key_0) {
    DropoutRun(MakeDropoutRow(head_.dropout_seed, i, b),
               static_cast<uint32_t>(begin), DropoutThreshold(head_.dropout),
               1.0f / (1.0f - head_.dropout), end - begin, work_.dropout);
    MultiplyRun(work_.dropout, end - begin, at_key_0 + begin);
  }

  HWY_INLINE void FinishRow(int64_t i) {
    const int64_t n = i - begin_;
    const float sum = work_.row_sum[n];
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
