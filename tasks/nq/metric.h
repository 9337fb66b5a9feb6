#ifndef ETC_TASKS_NQ_METRIC_H_
#define ETC_TASKS_NQ_METRIC_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "tasks/nq/raw.h"

namespace etc {

// What a model, or a file of predictions, says of one document.
struct NqPrediction {
  int64_t example_id = 0;
  NqSpan long_answer;
  double long_answer_score = 0;
  std::vector<NqSpan> short_answers;
  NqYesNo yes_no = NqYesNo::kNone;
  double short_answers_score = 0;
};

// The official scores of a data set (nq_eval.py; nq spec 7).
class NqScorer {
 public:
  void AddGold(int64_t example_id, std::vector<NqAnnotation> annotations);
  void AddPrediction(NqPrediction prediction);

  // "average_f1", then "long_f1", "long_precision", "long_recall",
  // "long_threshold", "long_recall_at_precision_0.5", ..._0.75, ..._0.9 and the
  // same with "short_": precision, recall and F1 at the threshold of the score
  // that has the best F1 on these very data. Empty without gold.
  std::vector<std::pair<std::string, double>> Scores() const;

 private:
  std::map<int64_t, std::vector<NqAnnotation>> gold_;
  std::map<int64_t, NqPrediction> predicted_;
};

// Scores a prediction file against data files with annotations.
// `gold_path` may be a pattern for several shards ("v1.0/dev/*.jsonl.gz").
//   kInvalidArgument  either is not as its format has it; they are not about
//                     the same documents
absl::StatusOr<std::vector<std::pair<std::string, double>>> ScoreNqFiles(
    const std::string& gold_path, const std::string& predictions_path);

}  // namespace etc

#endif  // ETC_TASKS_NQ_METRIC_H_
