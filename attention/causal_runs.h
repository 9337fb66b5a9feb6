#ifndef ETC_ATTENTION_CAUSAL_RUNS_H_
#define ETC_ATTENTION_CAUSAL_RUNS_H_

#include "attention/pattern_runs.h"

namespace etc {

// Restricts a pattern to the past, as AttentionInputs::Causal defines it, but
// for l2l: the window over own keys, which ends with the query, does that.
void RestrictToPast(PatternRuns* runs);

}  // namespace etc

#endif  // ETC_ATTENTION_CAUSAL_RUNS_H_
