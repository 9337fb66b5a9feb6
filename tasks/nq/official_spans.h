#ifndef ETC_TASKS_NQ_OFFICIAL_SPANS_H_
#define ETC_TASKS_NQ_OFFICIAL_SPANS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "tasks/nq/span_selection.h"

namespace etc {

// A token of a document with the score of being an end of an answer.
struct NqScoredToken {
  double score = 0;
  int64_t token = 0;

  friend bool operator==(const NqScoredToken&, const NqScoredToken&) = default;
};

// Returns for each channel the tokens that the official program looks at
// (doc/nq.md 6.2): of every window in turn those of the 50 largest logits over
// all long tokens, padding included, that are pieces of the document; the score
// is the logit divided by that of [CLS]. Scores that are not finite, against
// which the official program has no guard, are left out.
std::array<std::vector<NqScoredToken>, kNqNumChannels> OfficialScoredTokens(
    absl::Span<const NqWindow> windows);

// The official answers (doc/nq.md 6.3). Their ends may come from different
// windows, the long answer need not be a candidate, and the short one may lie
// outside of it. kJoint without any tokens gives the first token of the
// document with a score of 0; the other methods then give no answer, where the
// official program stops.
NqSelection SelectNqSpansOfficially(absl::Span<const NqWindow> windows,
                                    NqSpanSelection method,
                                    int64_t max_short_length);

}  // namespace etc

#endif  // ETC_TASKS_NQ_OFFICIAL_SPANS_H_
