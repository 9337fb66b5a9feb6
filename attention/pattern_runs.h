#ifndef ETC_ATTENTION_PATTERN_RUNS_H_
#define ETC_ATTENTION_PATTERN_RUNS_H_

#include <cstdint>

#include "attention/key_runs.h"
#include "attention/pattern.h"

namespace etc {

// A pattern as runs of keys, for the fused backends: who sees whom, and which
// pairs have a special relative id. O(L + G) memory, because tokens of a
// segment share their runs.
struct PatternRuns {
  SoftmaxRuns long_side;    // own keys l2l, other keys l2g
  SoftmaxRuns global_side;  // own keys g2g, other keys g2l
};

// Number of runs of a table of one example. Throws c10::Error if there are 2^31
// or more, which its sets could not refer to.
int32_t RunCount(const RunSetTable& table);

// The runs of a pattern in a batch of `long_length` and `global_length` tokens,
// which the pattern must fit; tokens beyond it have empty sets.
PatternRuns MakePatternRuns(const AttentionPattern& pattern,
                            int64_t long_length, int64_t global_length);

}  // namespace etc

#endif  // ETC_ATTENTION_PATTERN_RUNS_H_
