#include "attention/causal_runs.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "attention/key_runs.h"

namespace etc {
namespace {

// Returns the last long token that each global token sees, -1 for none.
std::vector<int64_t> Horizons(const RunSetTable& g2l) {
  std::vector<int64_t> horizons(g2l.first.size(), -1);
  for (size_t g = 0; g < horizons.size(); ++g) {
    if (g2l.first[g] < g2l.last[g]) {
      horizons[g] = g2l.runs[static_cast<size_t>(g2l.last[g] - 1)].end - 1;
    }
  }
  return horizons;
}

// Query i keeps the keys whose horizon is at most limits[i]. Neighbours with
// one set and one limit share their runs.
RunSetTable UpTo(const RunSetTable& visible,
                 const std::vector<int64_t>& horizons,
                 const std::vector<int64_t>& limits) {
  RunSetTable past = EmptySets(static_cast<int64_t>(visible.first.size()));
  for (size_t i = 0; i < visible.first.size(); ++i) {
    if (i > 0 && limits[i] == limits[i - 1] &&
        visible.first[i] == visible.first[i - 1] &&
        visible.last[i] == visible.last[i - 1]) {
      past.first[i] = past.first[i - 1];
      past.last[i] = past.last[i - 1];
      continue;
    }
    past.first[i] = RunCount(past);
    for (int32_t r = visible.first[i]; r < visible.last[i]; ++r) {
      const KeyRun run = visible.runs[static_cast<size_t>(r)];
      bool is_open = false;
      for (int32_t key = run.begin; key < run.end; ++key) {
        const bool is_past = horizons[static_cast<size_t>(key)] <= limits[i];
        if (is_past && is_open) {
          past.runs.back().end = key + 1;
        } else if (is_past) {
          past.runs.push_back({key, key + 1});
        }
        is_open = is_past;
      }
    }
    past.last[i] = RunCount(past);
  }
  return past;
}

// The largest horizon that each long token has behind it: what it may see
// changes there only.
std::vector<int64_t> LimitsOfLongs(std::vector<int64_t> horizons,
                                   size_t longs) {
  std::sort(horizons.begin(), horizons.end());
  std::vector<int64_t> limits(longs, -1);
  size_t next = 0;
  for (size_t i = 0; i < longs; ++i) {
    while (next < horizons.size() &&
           horizons[next] <= static_cast<int64_t>(i)) {
      ++next;
    }
    limits[i] = next == 0 ? -1 : horizons[next - 1];
  }
  return limits;
}

}  // namespace

void RestrictToPast(PatternRuns* runs) {
  RunSetTable& l2g = runs->long_side.other.visible;
  RunSetTable& g2g = runs->global_side.own.visible;
  const std::vector<int64_t> horizons =
      Horizons(runs->global_side.other.visible);
  l2g = UpTo(l2g, horizons, LimitsOfLongs(horizons, l2g.first.size()));
  g2g = UpTo(g2g, horizons, horizons);
}

}  // namespace etc
