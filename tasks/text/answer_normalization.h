#ifndef ETC_TASKS_TEXT_ANSWER_NORMALIZATION_H_
#define ETC_TASKS_TEXT_ANSWER_NORMALIZATION_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace etc {

// The form in which the official evaluators of question answering compare
// answers (doc/hotpotqa.md 8): in lower case, without the 32 characters of
// ASCII punctuation (deleted, not replaced) and the words "a", "an" and "the",
// words separated by one blank.
std::string NormalizeAnswer(absl::string_view text);

// The words of a normalised answer.
std::vector<std::string> AnswerWords(absl::string_view normalized);

// Shares in [0, 1].
struct PrecisionRecall {
  double precision = 0;
  double recall = 0;

  // 2PR / (P + R), 0 if both are 0.
  double f1() const {
    return precision + recall == 0
               ? 0.0
               : 2 * precision * recall / (precision + recall);
  }
};

// Agreement of the words of two normalised answers, as multisets. All is 0 if
// they share no word, and so if both are empty.
PrecisionRecall WordOverlap(absl::string_view predicted,
                            absl::string_view gold);

}  // namespace etc

#endif  // ETC_TASKS_TEXT_ANSWER_NORMALIZATION_H_
