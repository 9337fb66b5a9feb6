#ifndef ETC_TASKS_HOTPOTQA_METRIC_H_
#define ETC_TASKS_HOTPOTQA_METRIC_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tasks/hotpotqa/prediction.h"
#include "tasks/hotpotqa/raw.h"
#include "tasks/task/benchmark.h"
#include "tasks/text/answer_normalization.h"

namespace etc {

// Exact match, and how much of the parts is right.
struct HotpotqaPartScore {
  double exact = 0;
  PrecisionRecall overlap;
};

// Scores one answer by normalised words; "yes", "no" and "noanswer" are right
// or wrong as a whole (doc/hotpotqa.md 8).
HotpotqaPartScore ScoreHotpotqaAnswer(absl::string_view predicted,
                                      absl::string_view gold);

// Scores the facts of one question, as sets.
HotpotqaPartScore ScoreHotpotqaFacts(const std::vector<HotpotqaFact>& predicted,
                                     const std::vector<HotpotqaFact>& gold);

// Scores both together: exact matches, precisions and recalls multiplied.
HotpotqaPartScore JointHotpotqaScore(const HotpotqaPartScore& answer,
                                     const HotpotqaPartScore& facts);

struct HotpotqaGold {
  std::string answer;
  std::vector<HotpotqaFact> facts;
};

// The predictions by the threshold with the best joint F1, the first of equals;
// unchanged without gold, and without thresholds to choose from.
ById<HotpotqaPrediction> WithBestHotpotqaThreshold(
    const ById<HotpotqaGold>& gold,
    const ById<HotpotqaPrediction>& predictions);

}  // namespace etc

#endif  // ETC_TASKS_HOTPOTQA_METRIC_H_
