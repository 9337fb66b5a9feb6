#ifndef ETC_ATTENTION_CAUSAL_RUNS_H_
#define ETC_ATTENTION_CAUSAL_RUNS_H_

#include <cstdint>

#include "attention/pattern_runs.h"

namespace etc {

// Restricts a pattern to the past, as AttentionInputs::Causal defines it. Sets
// of l2l lose the keys outside of the window as well, so that they are short.
void RestrictToPast(int64_t local_radius, PatternRuns* runs);

}  // namespace etc

#endif  // ETC_ATTENTION_CAUSAL_RUNS_H_
