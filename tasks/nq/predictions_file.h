#ifndef ETC_TASKS_NQ_PREDICTIONS_FILE_H_
#define ETC_TASKS_NQ_PREDICTIONS_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tasks/nq/metric.h"

namespace etc {

// The official prediction file (nq spec 6.5):
//
//   {"predictions": [{"example_id": -42, "long_answer": {"start_token": 3,
//     "end_token": 12, "start_byte": -1, "end_byte": -1},
//     "long_answer_score": 6.0, "short_answers": [{...}, ...],
//     "short_answers_score": 4.5, "yes_no_answer": "NONE"}, ...]}

// Reads one. Answers that are absent are none; spans may be without bytes. Of
// several predictions for a document the last counts, as officially. `source`
// starts each message.
//   kInvalidArgument  not that; a score is absent or not finite (which Python
//                     writes as NaN or Infinity); a span is none (nq spec 7.1);
//                     yes or no beside short answers
absl::StatusOr<std::vector<NqPrediction>> NqPredictionsFromJson(
    absl::string_view json, const std::string& source);

// Writes one, with a line for each prediction. Scores must be finite.
std::string NqPredictionsToJson(const std::vector<NqPrediction>& predictions);

}  // namespace etc

#endif  // ETC_TASKS_NQ_PREDICTIONS_FILE_H_
