#ifndef ETC_TASKS_NQ_METRIC_H_
#define ETC_TASKS_NQ_METRIC_H_

#include <cstdint>
#include <map>
#include <optional>
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

struct NqScorerOptions {
  // A document has a long (short) answer if so many annotators gave one.
  int64_t long_non_null_threshold = 2;
  int64_t short_non_null_threshold = 2;
  // Of a document with fewer annotators than that, all of them decide, because
  // otherwise no document of the training data, with one annotator each, would
  // have an answer and all scores would be 0. With official_compatibility that
  // is so (nq spec 7.2). It makes no difference to the official dev data, with
  // five.
  bool official_compatibility = false;
};

// The official scores of a data set (nq_eval.py; nq spec 7).
class NqScorer {
 public:
  explicit NqScorer(NqScorerOptions options = {}) : options_(options) {}

  // Each replaces what was added for the document before.
  void AddGold(int64_t example_id, std::vector<NqAnnotation> annotations);
  void AddPrediction(NqPrediction prediction);

  // "average_f1", then "long_f1", "long_precision", "long_recall",
  // "long_threshold", "long_recall_at_precision_0.5", ..._0.75, ..._0.9 and the
  // same with "short_": precision, recall and F1 at the threshold of the score
  // that has the best F1 on these very data (the official program calls them
  // "long-best-threshold-f1", ..., "long-best-threshold" and
  // "long-recall-at-precision>=0.5"). Empty without gold. A document without
  // prediction counts as one for which no answer was given; predictions for
  // others are ignored.
  std::vector<std::pair<std::string, double>> Scores() const;

  // Nothing, or a document that has gold but no prediction, or the other way
  // round.
  std::optional<int64_t> WithoutPrediction() const;
  std::optional<int64_t> WithoutGold() const;

 private:
  NqScorerOptions options_;
  std::map<int64_t, std::vector<NqAnnotation>> gold_;
  std::map<int64_t, NqPrediction> predicted_;
};

// Scores a prediction file (tasks/nq/predictions_file.h) against data files
// with annotations, of either format, or with nothing else in them than
// "example_id" and "annotations". `gold_path` may be a pattern for several
// shards ("v1.0/dev/*.jsonl.gz"). Of several records or predictions of one
// document the last counts, in the order of the files' names.
//   kInvalidArgument  either is not as its format has it; they are not about
//                     the same documents
absl::StatusOr<std::vector<std::pair<std::string, double>>> ScoreNqFiles(
    const std::string& gold_path, const std::string& predictions_path,
    const NqScorerOptions& options = {});

}  // namespace etc

#endif  // ETC_TASKS_NQ_METRIC_H_
