#ifndef ETC_ATTENTION_CAUSAL_RUNS_H_
#define ETC_ATTENTION_CAUSAL_RUNS_H_

#include <cstdint>

#include "attention/pattern_runs.h"

namespace etc {

// Restricts the sets of l2l to the windows if they have many runs (holes all
// over the sequence), in which the kernels would otherwise search for each
// query. Nobody sees more or less.
void ShortenLongSets(int64_t local_radius, PatternRuns* runs);

// Restricts a pattern to the past, as AttentionInputs::Causal defines it. Sets
// of l2l lose the keys outside of the window as well, so that they are short.
void RestrictToPast(int64_t local_radius, PatternRuns* runs);

}  // namespace etc

#endif  // ETC_ATTENTION_CAUSAL_RUNS_H_
