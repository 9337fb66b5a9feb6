#include "tasks/train/score_summary.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

namespace etc {

ScoreSummary SummarizeScore(std::string name, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t count = values.size();
  const size_t middle = count / 2;
  ScoreSummary summary{.name = std::move(name)};
  summary.median = count % 2 == 1 ? values[middle]
                                  : (values[middle - 1] + values[middle]) / 2;
  if (count > 1) {
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) /
                        static_cast<double>(count);
    double squares = 0;
    for (const double value : values) {
      squares += (value - mean) * (value - mean);
    }
    summary.standard_deviation =
        std::sqrt(squares / static_cast<double>(count - 1));
  }
  return summary;
}

nlohmann::ordered_json ScoreSummariesToJson(
    const std::vector<ScoreSummary>& scores) {
  using Json = nlohmann::ordered_json;
  Json json = Json::object();
  for (const ScoreSummary& score : scores) {
    json[score.name] = {
        {"median", score.median},
        {"standard_deviation", score.standard_deviation.has_value()
                                   ? Json(*score.standard_deviation)
                                   : Json()}};
  }
  return json;
}

}  // namespace etc
