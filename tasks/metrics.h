#ifndef ETC_TASKS_METRICS_H_
#define ETC_TASKS_METRICS_H_

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace etc {

// Named scores in the order in which they are shown; shares are in [0, 1].
using Metrics = std::vector<std::pair<std::string, double>>;

// The score of that name, or nothing.
inline std::optional<double> FindMetric(const Metrics& metrics,
                                        const std::string& name) {
  for (const auto& [metric, value] : metrics) {
    if (metric == name) {
      return value;
    }
  }
  return std::nullopt;
}

// part / whole, 0 of nothing.
inline double Share(double part, int64_t whole) {
  return whole == 0 ? 0.0 : part / static_cast<double>(whole);
}

// Shares in [0, 1] of one record or of a data set, or sums of them.
struct F1Scores {
  double f1 = 0;
  double precision = 0;
  double recall = 0;
};

// True if a smaller value of the score of that name is better: "loss",
// "perplexity", "error", "error_rate", "mse", "rmse", "mae", "wer", "cer", and
// names that end in "_" and one of these: "sentence_loss".
bool IsLowerBetter(const std::string& name);

// The score by which models are compared.
struct MainMetric {
  std::string name = {};
  bool lower_is_better = false;

  // Any score is better than one that is not a number.
  bool IsBetter(double score, double than) const {
    return std::isnan(than) ? !std::isnan(score)
                            : (lower_is_better ? score < than : score > than);
  }
};

// Records of a data set that have no answer, and are in no score.
struct UnansweredRecords {
  int64_t count = 0;
  // Name of the first of them in messages: "dev.json: record 3".
  std::string first = {};
};

// Scores, and the name of the one by which checkpoints are compared.
struct TaskScores {
  Metrics metrics = {};
  std::string main_metric = {};
  UnansweredRecords unanswered = {};
  // A remark for people about files that may not be what they should be: "all
  // 80 predictions are the same"; empty: there is none.
  std::string remark = {};
};

// The paths that `realetc score` was given.
struct ScoredFiles {
  std::string gold = {};
  std::string predictions = {};
  // Options, without the name of the task, by which the predictions are to be
  // decoded anew: "threshold".
  std::vector<std::string> decoding = {};
};

// Keeps or mends the official scoring where it is of no use: Natural Questions
// with one annotator, empty key phrases of OpenKP (README.md of the tasks). For
// other tasks both are the same.
enum class ScoringRules { kDefault, kOfficial };

// Named scores as people and programs read them; shares are in [0, 1]. `main`
// is the name of the metric by which checkpoints are compared.

// "0.7921", with 4 decimals; where these say little of it, 4 digits:
// "1.234e-05".
std::string FormatScore(double score);

// "accuracy 0.7921"; "no accuracy" if that is not among the scores.
std::string FormatMainScore(const Metrics& scores, const std::string& main);

// A line for each score, the main one first:
//
//   joint_f1  0.7357  (main metric)
//   em        0.6000
//
// A single score has no remark.
std::string FormatScoreTable(const Metrics& scores, const std::string& main);

// One JSON object on one line, in the order of the scores, with as many digits
// as it takes to read back the same numbers. Those that JSON has not are
// strings, "inf" or "nan".
std::string ScoresToJson(const Metrics& scores);

}  // namespace etc

#endif  // ETC_TASKS_METRICS_H_
