#ifndef ETC_TASKS_TRAIN_SCORE_SUMMARY_H_
#define ETC_TASKS_TRAIN_SCORE_SUMMARY_H_

#include <optional>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace etc {

// A score over all seeds.
struct ScoreSummary {
  std::string name;
  double median = 0;
  // Of a sample (n - 1); absent for a single seed.
  std::optional<double> standard_deviation;
};

// The median, and how the values spread. `values` is not empty.
ScoreSummary SummarizeScore(std::string name, std::vector<double> values);

// {"accuracy": {"median": 0.8, "standard_deviation": 0.01}}
nlohmann::ordered_json ScoreSummariesToJson(
    const std::vector<ScoreSummary>& scores);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_SCORE_SUMMARY_H_
