// The scores of a group of queries, from products to weights. Compiled once for
// each SIMD target: see foreach_target.h of Highway.

#include <algorithm>
#include <cstdint>

#include "attention/backends/cpu/kernels/attention_tile.h"
#include "attention/backends/cpu/kernels/invisible_keys-inl.h"
#include "attention/backends/cpu/kernels/key_bits-inl.h"
#include "attention/backends/cpu/kernels/key_runs-inl.h"
#include "attention/backends/cpu/kernels/matrix-inl.h"
#include "attention/backends/cpu/kernels/packing-inl.h"
#include "attention/backends/cpu/kernels/relative_columns-inl.h"
#include "attention/backends/cpu/kernels/score_rows-inl.h"
#include "attention/backends/cpu/kernels/tile-inl.h"
#include "attention/backends/cpu/kernels/tile_sizes.h"
#include "hwy/highway.h"

#if defined(ETC_ATTENTION_BACKENDS_CPU_KERNELS_GROUP_SCORES_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef ETC_ATTENTION_BACKENDS_CPU_KERNELS_GROUP_SCORES_INL_H_
#undef ETC_ATTENTION_BACKENDS_CPU_KERNELS_GROUP_SCORES_INL_H_
#else
#define ETC_ATTENTION_BACKENDS_CPU_KERNELS_GROUP_SCORES_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace etc::kernels::HWY_NAMESPACE {

// A few queries (Products::kGroupRows), and the keys they see among those that
// are packed together.
struct QueryGroup {
  int block;
  int64_t first;
  int64_t rows;
  // Row strides are those of TileSizes. Rows begin at vectors' borders, and
  // whole vectors of them may be written.
  const float* relative;   // [rows][relative]: scores by relative column
  float* scores;           // [rows][score_stride]: from key hull.begin on
  float* relative_scores;  // [rows][relative_stride]: by key or distance
  VisibleKeys keys[kMostGroupRows];
  KeyRange hull = {0, 0};
  // Sets from key first_bit on; null of rows that see all of their range.
  const uint32_t* sets[kMostGroupRows];
  int64_t first_bit = 0;

  // Sets the members from `keys` on to the keys of `range` that the queries
  // see; `bits` are of that range. The hull begins with a multiple of
  // `multiple` keys of the range.
  HWY_INLINE void SetKeys(const KeyBlock& key_block, KeyRange range,
                          int64_t multiple, KeyBits* bits) {
    first_bit = bits->first();
    // Kept in registers: members would be read right after they are written.
    KeyRange all = {0, 0};
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t i = first + r;
      if (r > 0 && SeesTheSame(key_block, i)) {
        keys[r] = keys[r - 1];
        sets[r] = sets[r - 1];
        continue;
      }
      const VisibleKeys seen = RowKeys(key_block, i, range);
      all = Union(all, seen.range);
      sets[r] = seen.whole ? nullptr : bits->SetOf(key_block.visible, i, r);
      keys[r] = seen;
    }
    if (!all.empty()) {
      all.begin -= (all.begin - range.begin) % multiple;
    }
    hull = all;
  }

  // Returns the elements of row r that it sees, where element 0 is key `key`.
  HWY_INLINE SomeElements ElementsOf(int64_t r, int64_t key) const {
    return {.begin = keys[r].range.begin - key,
            .end = keys[r].range.end - key,
            .words = sets[r],
            .first = key - first_bit};
  }
};

class GroupScores {
 public:
  HWY_INLINE GroupScores(const AttentionHead& head,
                         const ForwardResults& results, const TileSizes& sizes)
      : head_(head),
        results_(results),
        sizes_(sizes),
        factor_(ExponentFactor(head)),
        threshold_(DropoutThreshold(head.dropout)),
        kept_(static_cast<float>(1.0 / (1.0 - head.dropout))) {}

  // Prepares the relative scores of the group's rows, before the products of
  // packed queries and keys are written to its scores.
  HWY_INLINE void PrepareRelative(const QueryGroup& group) {
    for (int64_t r = 0; r < group.rows; ++r) {
      PrepareRelativeRow(group, r);
    }
  }

  // Adds to linked keys, after the products, the difference of their relative
  // score from that of the others, all of which have the same one.
  HWY_INLINE void AddLinks(const QueryGroup& group) {
    const KeyBlock& block = BlockOf(group);
    if (block.rule != RelativeRule::kLink) {
      return;
    }
    for (int64_t r = 0; r < group.rows; ++r) {
      const float* const special = ByColumn(group, r) + 2 * head_.max_distance;
      const float more = special[kLinked] - special[kNotLinked];
      float* const at_key_0 = ScoresOf(group, r) - group.hull.begin;
      ForEachRun(block.special, group.first + r, group.keys[r].range,
                 [&](int64_t begin, int64_t end) HWY_ATTR {
                   AddToRun(more, end - begin, at_key_0 + begin);
                 });
    }
  }

  // Turns products into scores, which are carried on, and these into logits
  // times the divisor; `most` becomes the largest of them and of its own lanes.
  HWY_INLINE void CompleteRow(const QueryGroup& group, int64_t r,
                              FloatVector* most) {
    const KeyBlock& block = BlockOf(group);
    const int64_t i = group.first + r;
    const int64_t m = head_.max_distance;
    const float* const by_column = ByColumn(group, r);
    float* const row = ScoresOf(group, r);
    const CarryRows carry = CarryOf(group, i);
    const SomeElements all = group.ElementsOf(r, group.hull.begin);
    const auto constant = [&](float score, int64_t begin,
                              int64_t end) HWY_ATTR {
      CompleteScores({begin, end, all.words, all.first}, SameScore{score},
                     carry, row, most);
    };
    const auto stored = [&](const float* scores, int64_t begin,
                            int64_t end) HWY_ATTR {
      CompleteScores({begin, end, all.words, all.first}, StoredScores{scores},
                     carry, row, most);
    };
    if (block.rule == RelativeRule::kNone) {
      return constant(0.0f, all.begin, all.end);
    }
    if (block.rule == RelativeRule::kLink) {
      return constant(by_column[2 * m + kNotLinked], all.begin, all.end);
    }
    if (block.special.runs != nullptr) {
      return stored(RelativeScoresOf(group, r), all.begin, all.end);
    }
    // Vectors before and behind those that differ by distance.
    const int64_t lanes = Lanes();
    const int64_t shift = group.hull.begin - i + m;  // column of element 0
    const int64_t near_begin = std::clamp(
        std::max<int64_t>(1 - shift, 0) / lanes * lanes, all.begin, all.end);
    const int64_t near_end =
        std::clamp(RoundUp(std::max<int64_t>(2 * m - shift, 0), lanes),
                   near_begin, all.end);
    constant(by_column[0], all.begin, near_begin);
    stored(RelativeScoresOf(group, r) + kPadding + shift, near_begin, near_end);
    constant(by_column[2 * m], near_end, all.end);
  }

  // Turns scores into weights, those of keys that are not visible into 0; adds
  // exponentials to `sum`.
  HWY_INLINE void ExponentiateRow(const QueryGroup& group, int64_t r,
                                  float row_max, FloatVector* sum) {
    float* const row = ScoresOf(group, r);
    const Exponent exponent = {.factor = factor_,
                               .highest = row_max,
                               .threshold = threshold_,
                               .kept = kept_};
    const int64_t key = group.hull.begin;
    const SomeElements elements = group.ElementsOf(r, key);
    ClearAround(group.keys[r].range, group.hull, row);
    if (head_.dropout > 0.0) {
      const DropoutRow dropout =
          MakeDropoutRow(head_.dropout_seed, group.first + r, group.block);
      Exponentiate</*kDropout=*/true>(elements, exponent, dropout, key, row,
                                      sum);
    } else {
      Exponentiate</*kDropout=*/false>(elements, exponent, {}, key, row, sum);
    }
  }

 private:
  HWY_INLINE const KeyBlock& BlockOf(const QueryGroup& group) const {
    return head_.blocks[group.block];
  }
  HWY_INLINE float* ScoresOf(const QueryGroup& group, int64_t r) const {
    return group.scores + r * sizes_.score_stride;
  }
  HWY_INLINE float* RelativeScoresOf(const QueryGroup& group, int64_t r) const {
    return group.relative_scores + r * sizes_.relative_stride;
  }
  HWY_INLINE const float* ByColumn(const QueryGroup& group, int64_t r) const {
    return group.relative + r * sizes_.relative;
  }

  // Computes the relative scores of a row: of distances, if they depend on
  // distance alone, with a vector of the first and the last on either side; of
  // each key, if distances and other segments mix.
  HWY_INLINE void PrepareRelativeRow(const QueryGroup& group, int64_t r) {
    const KeyBlock& block = BlockOf(group);
    if (block.rule != RelativeRule::kDistance) {
      return;
    }
    const int64_t last = 2 * head_.max_distance;
    const float* const by_column = ByColumn(group, r);
    float* const to = RelativeScoresOf(group, r);
    if (block.special.runs != nullptr) {
      return FillRelativeScores(block, head_.max_distance, group.first + r,
                                group.hull, by_column, to);
    }
    FillRun(by_column[0], kPadding, to);
    PackRow(by_column, last, last, 1.0f, to + kPadding);
    FillRun(by_column[last], kPadding, to + kPadding + last);
  }

  // Returns pointers to the score rows of query i, at the first key of the
  // group's hull.
  HWY_INLINE CarryRows CarryOf(const QueryGroup& group, int64_t i) const {
    const KeyBlock& block = BlockOf(group);
    const float* const previous =
        ScoreRow(results_.previous[group.block], block, i);
    float* const carried = ScoreRow(results_.carried[group.block], block, i);
    const int64_t first = group.hull.begin;
    return {.previous = previous == nullptr ? nullptr : previous + first,
            .carried = carried == nullptr ? nullptr : carried + first,
            .subtract = results_.subtract,
            .is_gated = head_.is_gated,
            .gate = head_.gates[group.block]};
  }

  const AttentionHead& head_;
  const ForwardResults& results_;
  const TileSizes& sizes_;
  const float factor_;
  const uint32_t threshold_;  // of dropout
  const float kept_;
};

}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled include guard
