#ifndef ETC_TASKS_WIKIHOP_METRIC_H_
#define ETC_TASKS_WIKIHOP_METRIC_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace etc {

// How many questions are answered correctly: equal to the gold answer when
// stripped and in lower case (wikihop spec 9).
struct WikihopScore {
  int64_t questions = 0;
  int64_t answered = 0;
  int64_t correct = 0;

  // A question without a prediction counts as wrong. 0 of no questions.
  double accuracy() const { return Share(correct); }
  double Share(int64_t part) const {
    return questions == 0
               ? 0.0
               : static_cast<double>(part) / static_cast<double>(questions);
  }
};

// Compares a file of predictions with an official data file.
//   kInvalidArgument  either is not as its format has it; a gold record without
//                     answer; two gold records of one id; a prediction for a
//                     question that the data do not have
absl::StatusOr<WikihopScore> ScoreWikihopFiles(
    const std::string& gold_path, const std::string& predictions_path);

}  // namespace etc

#endif  // ETC_TASKS_WIKIHOP_METRIC_H_
