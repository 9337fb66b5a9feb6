// The scores of six queries in the forward pass, from products to weights.
// Compiled once for each SIMD target: see foreach_target.h of Highway.

#include <algorithm>
#include <cstdint>

#include "attention/kernels/attention_tile.h"
#include "attention/kernels/key_runs-inl.h"
#include "attention/kernels/score_rows-inl.h"
#include "attention/kernels/tile-inl.h"
#include "hwy/highway.h"

#if defined(ETC_ATTENTION_KERNELS_GROUP_SCORES_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef ETC_ATTENTION_KERNELS_GROUP_SCORES_INL_H_
#undef ETC_ATTENTION_KERNELS_GROUP_SCORES_INL_H_
#else
#define ETC_ATTENTION_KERNELS_GROUP_SCORES_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace etc::kernels::HWY_NAMESPACE {

// Six queries or fewer, and what they see of a chunk.
struct QueryGroup {
  int block;
  int64_t first;
  int64_t rows;
  VisibleKeys keys[kBlockRows] = {};
  KeyRange hull = {0, 0};
};

// Rows are at vectors' borders, and whole vectors of them may be written.
struct ScoreBuffers {
  float* scores;  // [6][score_stride]: element 0 is at key hull.begin
  int64_t score_stride;
  float* relative_scores;  // [6][relative_stride]: see PrepareRelative
  int64_t relative_stride;
  const float* relative;  // [queries][relative_columns], of a tile
  int64_t relative_columns;
};

class GroupScores {
 public:
  // The tile's first query is `begin`.
  HWY_INLINE GroupScores(const AttentionHead& head,
                         const ForwardResults& results, int64_t begin,
                         const ScoreBuffers& buffers)
      : head_(head),
        results_(results),
        begin_(begin),
        buffers_(buffers),
        factor_(ExponentFactor(head)),
        threshold_(DropoutThreshold(head.dropout)),
        kept_(1.0f / (1.0f - head.dropout)) {}

  // Relative scores of a row: where they go by distance alone, those of the
  // distances, with a vector of the first and the last on either side; where
  // distances and other segments mix, those of each key.
  HWY_INLINE void PrepareRelative(const QueryGroup& group, int64_t r) {
    const KeyBlock& block = BlockOf(group);
    if (block.rule != RelativeRule::kDistance) {
      return;
    }
    const int64_t i = group.first + r;
    const int64_t last = 2 * head_.max_distance;
    const float* const by_column = ByColumn(i);
    float* const to = RelativeScoresOf(r);
    if (block.special.runs != nullptr) {
      return FillRelativeScores(block, head_.max_distance, i, group.hull,
                                by_column, to);
    }
    FillRun(by_column[0], kPadding, to);
    PackRow(by_column, last, last, 1.0f, to + kPadding);
    FillRun(by_column[last], kPadding, to + kPadding + last);
  }

  // Links among keys that have none, else all with one relative score.
  HWY_INLINE void AddLinks(const QueryGroup& group) {
    const KeyBlock& block = BlockOf(group);
    if (block.rule != RelativeRule::kLink) {
      return;
    }
    for (int64_t r = 0; r < group.rows; ++r) {
      const float* const special =
          ByColumn(group.first + r) + 2 * head_.max_distance;
      const float more = special[kLinked] - special[kNotLinked];
      float* const at_key_0 = ScoresOf(r) - group.hull.begin;
      ForEachRun(block.special, group.first + r, group.keys[r].range,
                 [&](int64_t begin, int64_t end) HWY_ATTR {
                   AddToRun(more, end - begin, at_key_0 + begin);
                 });
    }
  }

  // Products to scores, which are carried on; returns the largest.
  HWY_INLINE float CompleteRow(const QueryGroup& group, int64_t r) {
    const VisibleKeys keys = group.keys[r];
    FloatVector most = hn::Set(FloatTag(), kLowest);
    ForEachVisible(group, r, [&](int64_t begin, int64_t end) HWY_ATTR {
      CompleteRun(group, r, begin, end, &most);
    });
    return keys.range.empty() ? kLowest
                              : hn::GetLane(hn::MaxOfLanes(FloatTag(), most));
  }

  // Scores to weights, those of keys that are not visible to 0; returns the sum
  // of exponentials.
  HWY_INLINE float ExponentiateRow(const QueryGroup& group, int64_t r,
                                   float row_max) {
    const int64_t i = group.first + r;
    const VisibleKeys& keys = group.keys[r];
    float* const row = ScoresOf(r);
    const Exponent exponent = {.factor = factor_,
                               .shift = factor_ * row_max,
                               .threshold = threshold_,
                               .kept = kept_};
    const DropoutRow dropout =
        head_.dropout > 0.0f
            ? MakeDropoutRow(head_.dropout_seed, i, group.block)
            : DropoutRow{};
    if (!keys.whole) {
      ZeroInvisible(BlockOf(group), i, group.hull, row - group.hull.begin);
      float sum = 0.0f;
      ForEachVisible(group, r, [&](int64_t begin, int64_t end) HWY_ATTR {
        sum += ToWeights</*kAlone=*/false>(begin, end, exponent, dropout,
                                           group.hull.begin, row);
      });
      return sum;
    }
    if (keys.range.empty()) {
      FillRun(0.0f, group.hull.size(), row);
      return 0.0f;
    }
    const int64_t begin = keys.range.begin - group.hull.begin;
    const int64_t end = keys.range.end - group.hull.begin;
    ClearAround(begin, end, group.hull.size(), row);
    return ToWeights</*kAlone=*/true>(begin, end, exponent, dropout,
                                      group.hull.begin, row);
  }

 private:
  HWY_INLINE const KeyBlock& BlockOf(const QueryGroup& group) const {
    return head_.blocks[group.block];
  }
  // Row r of the scores of a group; element 0 is at key hull.begin.
  HWY_INLINE float* ScoresOf(int64_t r) const {
    return buffers_.scores + r * buffers_.score_stride;
  }
  HWY_INLINE float* RelativeScoresOf(int64_t r) const {
    return buffers_.relative_scores + r * buffers_.relative_stride;
  }
  HWY_INLINE const float* ByColumn(int64_t i) const {
    return buffers_.relative + (i - begin_) * buffers_.relative_columns;
  }

  // Calls function(begin, end), counted from the hull, for each run of keys
  // that row r sees.
  template <typename Function>
  HWY_INLINE void ForEachVisible(const QueryGroup& group, int64_t r,
                                 const Function& function) const {
    const VisibleKeys& keys = group.keys[r];
    const int64_t first = group.hull.begin;
    if (keys.whole) {
      return function(keys.range.begin - first, keys.range.end - first);
    }
    ForEachRun(BlockOf(group).visible, group.first + r, keys.range,
               [&](int64_t begin, int64_t end)
                   HWY_ATTR { function(begin - first, end - first); });
  }

  HWY_INLINE void CompleteRun(const QueryGroup& group, int64_t r, int64_t begin,
                              int64_t end, FloatVector* most) {
    const KeyBlock& block = BlockOf(group);
    const int64_t i = group.first + r;
    const int64_t m = head_.max_distance;
    const float* const by_column = ByColumn(i);
    float* const row = ScoresOf(r);
    const CarryRows carry = CarryOf(group, i);
    const auto constant = [&](float score, int64_t first,
                              int64_t last) HWY_ATTR {
      CompleteScores(first, last, SameScore{score}, carry, row, most);
    };
    const auto stored = [&](const float* scores, int64_t first,
                            int64_t last) HWY_ATTR {
      CompleteScores(first, last, StoredScores{scores}, carry, row, most);
    };
    if (block.rule == RelativeRule::kNone) {
      return constant(0.0f, begin, end);
    }
    if (block.rule == RelativeRule::kLink) {
      return constant(by_column[2 * m + kNotLinked], begin, end);
    }
    if (block.special.runs != nullptr) {
      return stored(RelativeScoresOf(r), begin, end);
    }
    // Vectors before and behind those that differ by distance.
    const int64_t lanes = Lanes();
    const int64_t shift = group.hull.begin - i + m;  // column of element 0
    const int64_t near_begin =
        std::clamp(std::max<int64_t>(1 - shift, 0) / lanes * lanes, begin, end);
    const int64_t near_end = std::clamp(
        RoundUp(std::max<int64_t>(2 * m - shift, 0), lanes), near_begin, end);
    constant(by_column[0], begin, near_begin);
    stored(RelativeScoresOf(r) + kPadding + shift, near_begin, near_end);
    constant(by_column[2 * m], near_end, end);
  }

  // At element 0 of a row of scores of query i.
  HWY_INLINE CarryRows CarryOf(const QueryGroup& group, int64_t i) const {
    const KeyBlock& block = BlockOf(group);
    const float* const previous =
        ScoreRow(results_.previous[group.block], block, i);
    float* const carried = ScoreRow(results_.carried[group.block], block, i);
    const int64_t first = group.hull.begin;
    return {.previous = previous == nullptr ? nullptr : previous + first,
            .carried = carried == nullptr ? nullptr : carried + first,
            .subtract = results_.subtract};
  }

  template <bool kAlone>
  HWY_INLINE float ToWeights(int64_t begin, int64_t end,
                             const Exponent& exponent, DropoutRow dropout,
                             int64_t key, float* row) {
    return head_.dropout > 0.0f ? Exponentiate<kAlone, true>(
                                      begin, end, exponent, dropout, key, row)
                                : Exponentiate<kAlone, false>(
                                      begin, end, exponent, dropout, key, row);
  }

  const AttentionHead& head_;
  const ForwardResults& results_;
  const int64_t begin_;
  const ScoreBuffers buffers_;
  const float factor_;
  const uint32_t threshold_;  // of dropout
  const float kept_;
};

}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled include guard
