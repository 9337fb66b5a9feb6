#ifndef ETC_TASKS_NQ_PREDICTION_H_
#define ETC_TASKS_NQ_PREDICTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tasks/nq/raw.h"
#include "tasks/nq/record.h"
#include "tasks/nq/span_selection.h"

namespace etc {

// Combines the windows over one document, in their order (doc/nq.md 6): the
// spans that SelectNqSpans finds, and the most probable answer type of the
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
// By default there is an answer if a candidate is whole in one of the windows,
// as each one is that is not longer than what two neighbours share; whether its
// score is high enough is decided when a data set is scored. Throws nothing;
// `windows` must not be empty.
NqPrediction DecodeNqDocument(absl::Span<const NqWindow> windows,
                              const NqOptions& options);

// The official prediction file (doc/nq.md 6.5):
//
//   {"predictions": [{"example_id": -42, "long_answer": {"start_token": 3,
//     "end_token": 12, "start_byte": -1, "end_byte": -1},
//     "long_answer_score": 6.0, "short_answers": [{...}, ...],
//     "short_answers_score": 4.5, "yes_no_answer": "NONE"}, ...]}

// Reads one. Answers that are absent are none; spans may be without bytes.
// `source` starts each message.
//   kInvalidArgument  not that; a score is absent or not finite (which Python
//                     writes as NaN or Infinity); a span is none
//                     (doc/nq.md 7.1); yes or no beside short answers; two
//                     predictions for a document, of which the official program
//                     takes the last
absl::StatusOr<std::vector<NqPrediction>> NqPredictionsFromJson(
    absl::string_view json, const std::string& source);

// An element of the list, on one line. Scores must be finite.
std::string NqPredictionToJson(const NqPrediction& prediction);

// Writes one, with a line for each prediction. Scores must be finite.
std::string NqPredictionsToJson(const std::vector<NqPrediction>& predictions);

}  // namespace etc

#endif  // ETC_TASKS_NQ_PREDICTION_H_
