// Loops over the runs of keys that a query sees. Compiled once for each SIMD
// target: see foreach_target.h of Highway.

#include <algorithm>
#include <cstdint>

#include "attention/backends/cpu/kernels/attention_tile.h"
#include "base/lanes-inl.h"
#include "hwy/highway.h"

#if defined(ETC_ATTENTION_BACKENDS_CPU_KERNELS_KEY_RUNS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef ETC_ATTENTION_BACKENDS_CPU_KERNELS_KEY_RUNS_INL_H_
#undef ETC_ATTENTION_BACKENDS_CPU_KERNELS_KEY_RUNS_INL_H_
#else
#define ETC_ATTENTION_BACKENDS_CPU_KERNELS_KEY_RUNS_INL_H_
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
HWY_INLINE const KeyRun* FirstRunBehind(const RunSets& sets, int64_t i,
                                        int64_t key) {
  const KeyRun* run = sets.runs + sets.first[i];
  const KeyRun* const last = sets.runs + sets.last[i];
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
  const KeyRun* const last = sets.runs + sets.last[i];
  for (const KeyRun* run = FirstRunBehind(sets, i, range.begin);
       run != last && run->begin < range.end; ++run) {
    function(std::max<int64_t>(run->begin, range.begin),
             std::min<int64_t>(run->end, range.end));
  }
}

// Calls inside(begin, end) for each piece of query i's set within `range`, and
// outside(begin, end) for the gaps between them.
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
  return block.window.is_restricted()
             ? KeyRange{i - block.window.before, i + block.window.after + 1}
             : KeyRange{0, block.keys};
}

// The keys of some range that a query sees: the smallest range that holds them,
// and whether they are all of it.
struct VisibleKeys {
  KeyRange range;
  bool whole;
};

// Returns the keys of `range` in query i's set.
HWY_INLINE VisibleKeys KeysOfSet(const RunSets& sets, int64_t i,
                                 KeyRange range) {
  const KeyRun* const last = sets.runs + sets.last[i];
  const KeyRun* const begin = FirstRunBehind(sets, i, range.begin);
  if (begin == last || begin->begin >= range.end) {
    return {{0, 0}, true};
  }
  const KeyRun* end = begin + 1;
  if (end != last && begin->end < range.end) {
    end = FirstRunBehind(sets, i, range.end);
    if (end == last || end->begin >= range.end) {
      --end;
    }
    ++end;
  }
  return {{std::max<int64_t>(begin->begin, range.begin),
           std::min<int64_t>((end - 1)->end, range.end)},
          end == begin + 1};
}

HWY_INLINE VisibleKeys RowKeys(const KeyBlock& block, int64_t i,
                               KeyRange limit) {
  return KeysOfSet(block.visible, i, Intersect(Window(block, i), limit));
}

// Returns true if query i has the same set of keys as query i - 1, of which a
// window may let others through.
HWY_INLINE bool HasTheSameSet(const RunSets& sets, int64_t i) {
  return sets.first[i] == sets.first[i - 1] && sets.last[i] == sets.last[i - 1];
}

// Returns true if query i sees exactly the keys of query i - 1.
HWY_INLINE bool SeesTheSame(const KeyBlock& block, int64_t i) {
  return !block.window.is_restricted() && HasTheSameSet(block.visible, i);
}

// The smallest range that holds all keys of `limit` which some of the queries
// see.
HWY_INLINE KeyRange RowsHull(const KeyBlock& block, int64_t begin, int64_t end,
                             KeyRange limit) {
  KeyRange hull = {0, 0};
  for (int64_t i = begin; i < end;) {
    const int64_t first = i++;
    while (i < end && HasTheSameSet(block.visible, i)) {
      ++i;
    }
    // Windows of adjacent queries are one range.
    const KeyRange windows = Union(Window(block, first), Window(block, i - 1));
    hull = Union(
        hull, KeysOfSet(block.visible, first, Intersect(windows, limit)).range);
  }
  return hull;
}

}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled include guard
