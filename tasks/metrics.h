#ifndef ETC_TASKS_METRICS_H_
#define ETC_TASKS_METRICS_H_

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

// Records of a data set that have no answer, and are in no score.
struct UnansweredRecords {
  int64_t count = 0;
  // How messages call the first of them: "dev.json: record 3".
  std::string first;
};

// Scores, and the name of the one by which checkpoints are compared.
struct TaskScores {
  Metrics metrics;
  std::string main_metric;
  UnansweredRecords unanswered = {};
};

// Whether the official scoring is kept where it is of no use: Natural Questions
// with one annotator, empty key phrases of OpenKP (README.md of the tasks). For
// other tasks both are the same.
enum class ScoringRules { kDefault, kOfficial };

}  // namespace etc

#endif  // ETC_TASKS_METRICS_H_
