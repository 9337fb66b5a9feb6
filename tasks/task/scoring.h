#ifndef ETC_TASKS_TASK_SCORING_H_
#define ETC_TASKS_TASK_SCORING_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tasks/data/record_scanner.h"
#include "tasks/metrics.h"

namespace etc {

// The result of a task's metric on a data set.
struct Scores {
  // The official scores, the task's main metric among them.
  Metrics metrics;
  // Further output of `realetc score`.
  Metrics diagnostics;
};

// Gold or predictions of a data set, each with the id of its record, in the
// order of the data. In files each id occurs once (IdPlaces).
template <typename T>
using ById = std::vector<std::pair<std::string, T>>;

// Input of a metric.
template <typename Gold, typename Prediction>
struct ScoredAnswers {
  ById<Gold> gold = {};
  ById<Prediction> predictions = {};
  ScoringRules rules = ScoringRules::kDefault;
};

// The values that count where only the last one of an id does. `values` must
// outlive the result.
template <typename T>
std::map<absl::string_view, const T*> LastOfEachId(const ById<T>& values) {
  std::map<absl::string_view, const T*> last;
  for (const auto& [id, value] : values) {
    last.insert_or_assign(id, &value);
  }
  return last;
}

// The value of `id`, or null.
template <typename T>
const T* FindById(const std::map<absl::string_view, const T*>& values,
                  absl::string_view id) {
  const auto found = values.find(id);
  return found == values.end() ? nullptr : found->second;
}

// The prediction for each value of `gold`, null if there is none. If an id
// comes several times in both, its first prediction is for its first gold and
// so on; what is left of its gold gets its last one.
template <typename Gold, typename Prediction>
std::vector<const Prediction*> PredictionsFor(
    const ById<Gold>& gold, const ById<Prediction>& predictions) {
  std::map<absl::string_view, std::vector<const Prediction*>> of_id;
  for (const auto& [id, prediction] : predictions) {
    of_id[id].push_back(&prediction);
  }
  std::map<absl::string_view, size_t> used;
  std::vector<const Prediction*> found;
  for (const auto& [id, value] : gold) {
    const std::vector<const Prediction*>& candidates = of_id[id];
    const size_t next = used[id]++;
    found.push_back(candidates.empty()         ? nullptr
                    : next < candidates.size() ? candidates[next]
                                               : candidates.back());
  }
  return found;
}

// part / whole, 0 of nothing.
inline double Share(double part, int64_t whole) {
  return whole == 0 ? 0.0 : part / static_cast<double>(whole);
}

// A file that a task writes beside its prediction file: the n-best answers
// beside the answers.
struct PredictionFile {
  // Prefix of its name, before that of the prediction file.
  std::string prefix;
  std::string contents;

  // Its path beside the prediction file at `path`: "out/nbest_dev.json" beside
  // "out/dev.json".
  std::string PathBeside(absl::string_view path) const {
    const size_t name = path.rfind('/') + 1;  // 0 if there is no folder
    return absl::StrCat(path.substr(0, name), prefix, path.substr(name));
  }
};

// The paths that `realetc score` was given.
struct ScoredFiles {
  std::string gold;
  std::string predictions;
};

// Calls `read` with the JSON text of each record of the official files that
// `pattern` names (tasks/data/data_files.h) and with what messages call it. The
// first error ends that and is returned.
absl::Status ForEachRecord(
    const std::string& pattern,
    const std::function<absl::Status(const std::string& text,
                                     const std::string& where)>& read,
    const RecordLimits& limits = {});

// Returns the error that no record of the gold has an answer; the first one is
// at `where`.
absl::Status NothingToScore(const ScoredFiles& files, absl::string_view where);

// Checks that the ids in `predicted` are those in `records`. The ids in
// `unanswered`, of records without an answer, may lack a prediction. `what`
// names the unit of the prediction file, "line" or "prediction".
//   kInvalidArgument  a record without prediction, or the other way round; the
//                     first of them by id
absl::Status CheckSameIds(const std::set<std::string>& records,
                          const std::set<std::string>& unanswered,
                          const std::set<std::string>& predicted,
                          const ScoredFiles& files, absl::string_view what);

// Checks that each prediction is of a record; a record may have none.
//   kInvalidArgument  a prediction is of no record
absl::Status CheckKnownIds(const std::set<std::string>& records,
                           const std::set<std::string>& predicted,
                           const ScoredFiles& files);

// Shares in [0, 1] of one record or of a data set, or sums of them.
struct F1Scores {
  double f1 = 0;
  double precision = 0;
  double recall = 0;
};

// Metrics of tasks that say a class or a number of each text (doc/glue.md 7).
// In double precision; where a formula has a divisor of 0 they are 0. Both
// arguments have the same size; each function throws std::invalid_argument if
// they do not.

// The share of labels that are equal.
double LabelAccuracy(absl::Span<const std::string> gold,
                     absl::Span<const std::string> predicted);

// 2 TP / (2 TP + FP + FN) of the label `positive`.
double LabelF1(absl::Span<const std::string> gold,
               absl::Span<const std::string> predicted,
               const std::string& positive);

// Matthews correlation of K classes, which for two is the usual one: with c of
// s predictions right, and class k predicted p_k times and true t_k times,
//
//   (c s - sum p_k t_k) / sqrt((s^2 - sum p_k^2) (s^2 - sum t_k^2))
double MatthewsCorrelation(absl::Span<const std::string> gold,
                           absl::Span<const std::string> predicted);

// Covariance divided by both standard deviations; 0 where one list is constant.
double PearsonCorrelation(absl::Span<const double> gold,
                          absl::Span<const double> predicted);

// Pearson's of the ranks; equal numbers have their mean rank.
double SpearmanCorrelation(absl::Span<const double> gold,
                           absl::Span<const double> predicted);

}  // namespace etc

#endif  // ETC_TASKS_TASK_SCORING_H_
