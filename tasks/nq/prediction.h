#ifndef ETC_TASKS_NQ_PREDICTION_H_
#define ETC_TASKS_NQ_PREDICTION_H_

#include <cstdint>

#include "absl/types/span.h"
#include "tasks/nq/metric.h"
#include "tasks/nq/span_selection.h"

namespace etc {

struct NqDecodingOptions {
  NqSpanSelection span_selection = NqSpanSelection::kJoint;
  // Whether the answer type can replace or take away the short answer.
  bool consider_answer_type = true;
  // Tokens.
  int64_t max_short_answer_length = 32;
  // Where the official program goes wrong: see README.md.
  bool official_compatibility = false;
};

// What the windows over one document, in their order, say together (nq spec 6):
// the spans that SelectNqSpans finds, and the most probable answer type of the
// window that has the long answer:
//
//   YES, NO  instead of the short answer, with a score of twice the type's
//            logit against NULL's: like a span's, which is the sum of two
//   LONG     no short answer
//
// With `official_compatibility` the spans are those of SelectNqSpansOfficially,
// the type is that of the last window, LONG changes nothing and scores are
// always those of the spans. Scores are finite.
//
// There is an answer unless the page has no candidates; whether its score is
// high enough is decided when a data set is scored. Throws nothing; `windows`
// must not be empty.
NqPrediction DecodeNqDocument(absl::Span<const NqWindow> windows,
                              const NqDecodingOptions& options);

}  // namespace etc

#endif  // ETC_TASKS_NQ_PREDICTION_H_
