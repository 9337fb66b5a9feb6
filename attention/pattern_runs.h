#ifndef ETC_ATTENTION_PATTERN_RUNS_H_
#define ETC_ATTENTION_PATTERN_RUNS_H_

#include <cstdint>
#include <vector>

#include "attention/backends/cpu/kernels/attention_head.h"
#include "attention/pattern.h"

namespace etc {

// A set of keys for each query, as runs of adjacent keys (kernels::RunSets).
struct RunSetTable {
  kernels::RunSets View() const {
    return {.runs = runs.data(), .first = first.data(), .last = last.data()};
  }

  std::vector<kernels::Run> runs;
  std::vector<int32_t> first;  // [queries]
  std::vector<int32_t> last;   // [queries]
};

// A pattern as the kernels want it: who sees whom, and which pairs have a
// special relative id, as runs of keys. O(L + G) memory, because tokens of a
// segment share their runs. Windows are not applied.
struct PatternRuns {
  // Visible keys.
  RunSetTable l2l, l2g, g2g, g2l;
  // Pairs of LinkedId.
  RunSetTable l2g_links, g2l_links;
  // Pairs of one global segment, to which distances apply.
  RunSetTable g2g_segments;
  // m; 0 for no relative ids.
  int64_t max_distance = 0;
};

// The runs of a pattern in a batch of `long_length` and `global_length` tokens,
// which the pattern must fit; tokens beyond it have empty sets.
PatternRuns MakePatternRuns(const AttentionPattern& pattern,
                            int64_t long_length, int64_t global_length);

}  // namespace etc

#endif  // ETC_ATTENTION_PATTERN_RUNS_H_
