#ifndef ETC_TASKS_HOTPOTQA_METRIC_H_
#define ETC_TASKS_HOTPOTQA_METRIC_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tasks/hotpotqa/prediction.h"
#include "tasks/hotpotqa/raw.h"
#include "tasks/text/answer_normalization.h"

namespace etc {

// Exact match, and how much of the parts is right.
struct HotpotqaPartScore {
  double exact = 0;
  PrecisionRecall overlap;
};

// Of one answer: by normalised words, where "yes", "no" and "noanswer" are
// right or wrong as a whole (hotpotqa spec 8).
HotpotqaPartScore ScoreHotpotqaAnswer(absl::string_view predicted,
                                      absl::string_view gold);

// Of the facts of one question, as sets.
HotpotqaPartScore ScoreHotpotqaFacts(const std::vector<HotpotqaFact>& predicted,
                                     const std::vector<HotpotqaFact>& gold);

// Of both together: exact matches, precisions and recalls multiplied.
HotpotqaPartScore JointHotpotqaScore(const HotpotqaPartScore& answer,
                                     const HotpotqaPartScore& facts);

// The official scores over a data set (hotpot_evaluate_v1; hotpotqa spec 8).
class HotpotqaScore {
 public:
  // What is missing counts 0, for its part and for the joint score.
  void Add(const std::optional<std::string>& answer,
           const std::optional<std::vector<HotpotqaFact>>& facts,
           const HotpotqaRecord& gold);

  int64_t questions() const { return questions_; }

  // em, f1, prec, recall, then the same with sp_ and joint_ in front: shares of
  // all questions.
  std::vector<std::pair<std::string, double>> Means() const;

  // "answered", the share of questions with an answer, and what answers of each
  // kind of question are like, as shares of its questions: "kinds/A_B" for gold
  // A (a span), Y (yes) or N (no), predicted Y, N, E (nothing), A (the gold
  // span; or, for yes and no, any other text) or B (another span).
  std::vector<std::pair<std::string, double>> Diagnostics() const;

 private:
  int64_t questions_ = 0;
  int64_t answered_ = 0;
  // Sums of em, f1, prec, recall.
  struct Sums {
    double exact = 0;
    double f1 = 0;
    double precision = 0;
    double recall = 0;

    void Add(const HotpotqaPartScore& score);
  };
  Sums answer_;
  Sums facts_;
  Sums joint_;
  std::map<std::string, int64_t> kinds_;
};

// Scores a prediction file against an official data file.
//   kInvalidArgument  either is not as its format has it; a gold record without
//                     answer. Predictions for other questions are ignored, as
//                     by the official program.
absl::StatusOr<HotpotqaScore> ScoreHotpotqaFiles(
    const std::string& gold_path, const std::string& predictions_path);

}  // namespace etc

#endif  // ETC_TASKS_HOTPOTQA_METRIC_H_
