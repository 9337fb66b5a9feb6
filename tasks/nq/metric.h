#ifndef ETC_TASKS_NQ_METRIC_H_
#define ETC_TASKS_NQ_METRIC_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "tasks/metrics.h"
#include "tasks/nq/prediction.h"
#include "tasks/nq/raw.h"
#include "tasks/task/benchmark.h"

namespace etc {

// Returns true if neither is null, and both are known and equal in bytes or in
// tokens (doc/nq.md 7.1).
bool NqSpansMatch(const NqSpan& a, const NqSpan& b);

// Returns true if each span that is not null matches one of the other set.
bool NqSpanSetsMatch(const std::vector<NqSpan>& a,
                     const std::vector<NqSpan>& b);

// Verdict on the long answer of a document, or on its short answers (doc/nq.md
// 7.2).
struct NqVerdict {
  bool has_gold = false;
  bool has_prediction = false;
  bool is_correct = false;  // only if both are there
  double score = 0;         // of the prediction
};

// A document has an answer if at least `threshold` of its annotations have one.
// The answer is correct if it is that of any one of them.
NqVerdict JudgeLongAnswer(const std::vector<NqAnnotation>& annotations,
                          const NqPrediction& prediction, int64_t threshold);
NqVerdict JudgeShortAnswers(const std::vector<NqAnnotation>& annotations,
                            const NqPrediction& prediction, int64_t threshold);

// Precisions at which recall is reported.
inline constexpr std::array<double, 3> kNqPrecisions = {0.5, 0.75, 0.9};

// Scores of the answers above the threshold with the best F1 (doc/nq.md 7.3);
// all 0 if F1 is 0 everywhere.
struct NqThresholdScores : F1Scores {
  // Answers with this score or more are given.
  double threshold = 0;
  // The best recall of all thresholds with at least that precision, or 0.
  std::array<double, kNqPrecisions.size()> recall_at_precision = {};
};

// Tries all scores as threshold; answers with equal ones are given together.
// With `correct` of the answers given,
//
//   P = correct / given    R = correct / documents with gold   (0 / 0 = 0)
//
// A score that is not a number comes last.
NqThresholdScores BestThreshold(std::vector<NqVerdict> verdicts);

// The official scores of a data set (nq_eval.py; doc/nq.md 7): "average_f1",
// then "long_f1", "long_precision", "long_recall", "long_threshold",
// "long_recall_at_precision_0.5", ..._0.75, ..._0.9 and the same with "short_":
// precision, recall and F1 at the threshold of the score that has the best F1
// on these very data (the official program calls them "long-best-threshold-f1",
// ..., "long-best-threshold" and "long-recall-at-precision>=0.5"). Empty
// without gold. A document without prediction counts as one for which no answer
// was given; predictions for others are ignored.
//
// A document has a long (short) answer if at least 2 annotators gave one. If it
// has one annotator, that one decides, because otherwise no document of the
// training data would have an answer and all scores would be 0; with
// ScoringRules::kOfficial that is so (doc/nq.md 7.2).
Metrics ScoreNq(const ById<std::vector<NqAnnotation>>& gold,
                const ById<NqPrediction>& predictions, ScoringRules rules);

// The score of a single document, whose answers are all given: the mean of long
// and short answer, each 1 if it is correct, or if there is none and none is
// predicted, else 0. Which document has an answer is as in ScoreNq.
double ScoreNqRecord(const std::vector<NqAnnotation>& annotations,
                     const NqPrediction& prediction, ScoringRules rules);

// The annotations of a record, if it has some, and its id. The rest of it may
// be absent.
//   kInvalidArgument  annotations that are not as the format has them
absl::StatusOr<std::pair<std::string, std::optional<std::vector<NqAnnotation>>>>
ParseNqGold(const std::string& text, const std::string& where);

}  // namespace etc

#endif  // ETC_TASKS_NQ_METRIC_H_
