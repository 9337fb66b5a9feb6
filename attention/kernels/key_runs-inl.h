// Which keys a query sees, and what of the relative table goes to them: walks
// over runs of keys. Compiled once for each SIMD target: see foreach_target.h
// of Highway.

#include <algorithm>
#include <cstdint>

#include "attention/kernels/attention_tile.h"
#include "attention/kernels/softmax_rows-inl.h"
#include "attention/kernels/tile_sizes.h"
#include "hwy/highway.h"

#if defined(ETC_ATTENTION_KERNELS_KEY_RUNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ETC_ATTENTION_KERNELS_KEY_RUNS_INL_H_
#undef ETC_ATTENTION_KERNELS_KEY_RUNS_INL_H_
#else
#define ETC_ATTENTION_KERNELS_KEY_RUNS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace etc::kernels::HWY_NAMESPACE {

// Keys [begin, end); empty if end <= begin.
struct KeyRange {
  int64_t begin;
  int64_t end;
  bool empty() const { return end <= begin; }
  int64_t size() const { return end - begin; }
};

HWY_INLINE KeyRange Intersect(KeyRange a, KeyRange b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

HWY_INLINE KeyRange Union(KeyRange a, KeyRange b) {
  if (a.empty()) {
    return b;
  }
  return b.empty()
             ? a
             : KeyRange{std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

// The first run of query i that ends behind `key`.
HWY_INLINE const Run* FirstRunBehind(const RunSets& sets, int64_t i,
                                     int64_t key) {
  const Run* run = sets.runs + sets.first[i];
  const Run* const last = sets.runs + sets.last[i];
  // Nearly every set is one run. A long set is that of a scattered segment.
  int64_t count = last - run;
  while (count > 0) {
    const int64_t half = count / 2;
    if (run[half].end <= key) {
      run += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return run;
}

// Calls function(begin, end) for each piece of query i's set within `range`.
template <typename Function>
HWY_INLINE void ForEachRun(const RunSets& sets, int64_t i, KeyRange range,
                           const Function& function) {
  const Run* const last = sets.runs + sets.last[i];
  for (const Run* run = FirstRunBehind(sets, i, range.begin);
       run != last && run->begin < range.end; ++run) {
    function(std::max<int64_t>(run->begin, range.begin),
             std::min<int64_t>(run->end, range.end));
  }
}

// Calls inside(begin, end) for each piece of query i's set within `range`, and
// outside(begin, end) for what lies between them.
template <typename Inside, typename Outside>
HWY_INLINE void SplitByRuns(const RunSets& sets, int64_t i, KeyRange range,
                            const Inside& inside, const Outside& outside) {
  int64_t done = range.begin;
  ForEachRun(sets, i, range, [&](int64_t begin, int64_t end) HWY_ATTR {
    if (done < begin) {
      outside(done, begin);
    }
    inside(begin, end);
    done = end;
  });
  if (done < range.end) {
    outside(done, range.end);
  }
}

// The keys that query i's window lets through.
HWY_INLINE KeyRange Window(const KeyBlock& block, int64_t i) {
  return block.radius < 0 ? KeyRange{0, block.keys}
                          : KeyRange{i - block.radius, i + block.radius + 1};
}

// The keys of some range that a query sees: the smallest range that holds them,
// and whether they are all of it.
struct VisibleKeys {
  KeyRange range;
  bool whole;
};

HWY_INLINE VisibleKeys RowKeys(const KeyBlock& block, int64_t i,
                               KeyRange limit) {
  const KeyRange range = Intersect(Window(block, i), limit);
  const Run* const last = block.visible.runs + block.visible.last[i];
  const Run* const begin = FirstRunBehind(block.visible, i, range.begin);
  if (begin == last || begin->begin >= range.end) {
    return {{0, 0}, true};
  }
  const Run* end = begin + 1;
  if (end != last && begin->end < range.end) {
    end = FirstRunBehind(block.visible, i, range.end);
    if (end == last || end->begin >= range.end) {
      --end;
    }
    ++end;
  }
  return {{std::max<int64_t>(begin->begin, range.begin),
           std::min<int64_t>((end - 1)->end, range.end)},
          end == begin + 1};
}

// Whether query i sees exactly what the one before it sees.
HWY_INLINE bool SeesTheSame(const KeyBlock& block, int64_t i) {
  const RunSets& visible = block.visible;
  return block.radius < 0 && visible.first[i] == visible.first[i - 1] &&
         visible.last[i] == visible.last[i - 1];
}

// The smallest range that holds all keys of `limit` which some of the queries
// see.
HWY_INLINE KeyRange RowsHull(const KeyBlock& block, int64_t begin, int64_t end,
                             KeyRange limit) {
  KeyRange hull = {0, 0};
  for (int64_t i = begin; i < end; ++i) {
    if (i == begin || !SeesTheSame(block, i)) {
      hull = Union(hull, RowKeys(block, i, limit).range);
    }
  }
  return hull;
}

// Calls function(begin, end) for each run of keys that query i sees; `keys` are
// those of some range.
template <typename Function>
HWY_INLINE void ForEachVisible(const KeyBlock& block, int64_t i,
                               const VisibleKeys& keys,
                               const Function& function) {
  if (keys.whole) {
    function(keys.range.begin, keys.range.end);
  } else {
    ForEachRun(block.visible, i, keys.range, function);
  }
}

HWY_INLINE void FillRun(float value, int64_t count, float* to) {
  const FloatTag tag;
  const FloatVector vector = hn::Set(tag, value);
  int64_t i = 0;
  for (; i + Lanes() <= count; i += Lanes()) {
    hn::StoreU(vector, tag, to + i);
  }
  if (i < count) {
    StoreTail(vector, count - i, to + i);
  }
}

// Zeros wherever query i does not see a key of `range`; `row` is at key 0.
HWY_INLINE void ZeroInvisible(const KeyBlock& block, int64_t i, KeyRange range,
                              float* row) {
  const auto fill = [&](int64_t begin, int64_t end)
                        HWY_ATTR { FillRun(0.0f, end - begin, row + begin); };
  if (range.empty()) {
    return;
  }
  const KeyRange window = Intersect(range, Window(block, i));
  if (window.empty()) {
    return fill(range.begin, range.end);
  }
  if (range.begin < window.begin) {
    fill(range.begin, window.begin);
  }
  SplitByRuns(
      block.visible, i, window, [](int64_t, int64_t) {}, fill);
  if (window.end < range.end) {
    fill(window.end, range.end);
  }
}

// Zeros in a row of the keys `range`, whose first element is at a vector's
// border: wherever query i does not see a key, or if the keys it sees are a
// whole range, in the vectors that hold none of them.
HWY_INLINE void ClearInvisible(const KeyBlock& block, int64_t i,
                               const VisibleKeys& keys, KeyRange range,
                               float* row) {
  if (!keys.whole) {
    return ZeroInvisible(block, i, range, row - range.begin);
  }
  if (keys.range.empty()) {
    return FillRun(0.0f, range.size(), row);
  }
  const int64_t lanes = Lanes();
  const int64_t before = (keys.range.begin - range.begin) / lanes * lanes;
  const int64_t behind = RoundUp(keys.range.end - range.begin, lanes);
  FillRun(0.0f, before, row);
  FillRun(0.0f, range.size() - behind, row + behind);
}

// As ZeroInvisible, for a row of carried scores, of which a window reaches
// beyond the keys that there are.
HWY_INLINE void ZeroInvisibleScores(const KeyBlock& block, int64_t i,
                                    KeyRange limit, float* row) {
  if (block.radius < 0) {
    return ZeroInvisible(block, i, limit, row);
  }
  const KeyRange window = Window(block, i);
  const KeyRange keys = Intersect(window, {0, block.keys});
  FillRun(0.0f, keys.begin - window.begin, row + window.begin);
  ZeroInvisible(block, i, keys, row);
  FillRun(0.0f, window.end - keys.end, row + keys.end);
}

// --- Relative ids -----------------------------------------------------------

// Columns of a query's products with the relative table: see
// RelativeIdOfColumn.
HWY_INLINE int64_t RelativeColumns(int64_t max_distance) {
  return 2 * max_distance + 4;
}
enum RelativeColumn { kNotLinked = 1, kLinked = 2, kOtherSegment = 3 };

// Splits keys [begin, end) by the relative column that query i has for them:
// constant(column, begin, end) and, for keys at different distances,
// distances(column of the first, begin, end).
template <typename Constant, typename Distances>
HWY_INLINE void SplitByDistance(int64_t m, int64_t i, int64_t begin,
                                int64_t end, const Constant& constant,
                                const Distances& distances) {
  const int64_t near_begin = std::clamp(i - m, begin, end);
  const int64_t near_end = std::clamp(i + m, begin, end);
  if (begin < near_begin) {
    constant(0, begin, near_begin);
  }
  if (near_begin < near_end) {
    distances(near_begin - i + m, near_begin, near_end);
  }
  if (near_end < end) {
    constant(2 * m, near_end, end);
  }
}

template <typename Constant, typename Distances>
HWY_INLINE void SplitByRelativeColumn(const KeyBlock& block, int64_t m,
                                      int64_t i, KeyRange range,
                                      const Constant& constant,
                                      const Distances& distances) {
  const auto by_distance = [&](int64_t begin, int64_t end) HWY_ATTR {
    SplitByDistance(m, i, begin, end, constant, distances);
  };
  switch (block.rule) {
    case RelativeRule::kNone:
      return;
    case RelativeRule::kDistance:
      if (block.special.runs == nullptr) {
        return by_distance(range.begin, range.end);
      }
      return SplitByRuns(block.special, i, range, by_distance,
                         [&](int64_t begin, int64_t end) HWY_ATTR {
                           constant(2 * m + kOtherSegment, begin, end);
                         });
    case RelativeRule::kLink:
      return SplitByRuns(
          block.special, i, range,
          [&](int64_t begin, int64_t end)
              HWY_ATTR { constant(2 * m + kLinked, begin, end); },
          [&](int64_t begin, int64_t end)
              HWY_ATTR { constant(2 * m + kNotLinked, begin, end); });
  }
}

// row[j - range.begin] = the relative score of query i and key j.
HWY_INLINE void FillRelativeScores(const KeyBlock& block, int64_t m, int64_t i,
                                   KeyRange range, const float* by_column,
                                   float* row) {
  if (block.rule == RelativeRule::kNone) {
    return FillRun(0.0f, range.size(), row);
  }
  SplitByRelativeColumn(
      block, m, i, range,
      [&](int64_t column, int64_t begin, int64_t end) HWY_ATTR {
        FillRun(by_column[column], end - begin, row + begin - range.begin);
      },
      [&](int64_t column, int64_t begin, int64_t end) HWY_ATTR {
        for (int64_t j = begin; j < end; ++j) {
          row[j - range.begin] = by_column[column + j - begin];
        }
      });
}

// The transpose: by_column[c] += sum of row over the keys of column c.
HWY_INLINE void AddRelativeGradient(const KeyBlock& block, int64_t m, int64_t i,
                                    KeyRange range, const float* row,
                                    float* by_column) {
  SplitByRelativeColumn(
      block, m, i, range,
      [&](int64_t column, int64_t begin, int64_t end) HWY_ATTR {
        by_column[column] += RunSum(row + begin - range.begin, end - begin);
      },
      [&](int64_t column, int64_t begin, int64_t end) HWY_ATTR {
        for (int64_t j = begin; j < end; ++j) {
          by_column[column + j - begin] += row[j - range.begin];
        }
      });
}

}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled include guard
