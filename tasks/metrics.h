#ifndef ETC_TASKS_METRICS_H_
#define ETC_TASKS_METRICS_H_

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

}  // namespace etc

#endif  // ETC_TASKS_METRICS_H_
