#ifndef ETC_TASKS_RUN_SUMMARY_H_
#define ETC_TASKS_RUN_SUMMARY_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "tasks/metrics.h"
#include "tasks/train/score_summary.h"

namespace etc {

// What summary.json says of a run.
// clang-tidy 14 takes the move of a JSON value for one that throws.
// NOLINTNEXTLINE(bugprone-exception-escape)
struct RunSummary {
  std::string directory;  // of the run
  std::string task;
  // The object of the task's name in its configuration; null in the summaries
  // of older runs.
  nlohmann::json options;
  std::string main_metric;
  Metrics medians;                   // over all seeds
  std::vector<ScoreSummary> scores;  // the same in the order of the file
  std::set<int64_t> seeds;
  std::map<int64_t, double> best;  // the main metric's, by seed
};

// Reads summary.json in the directory of a run.
absl::StatusOr<RunSummary> ReadRunSummary(const std::string& directory);

// A directory that may be that of a grid.
struct FoundRun {
  std::string directory;
  // "the best of 4 settings, median accuracy 0.7921"; empty without a grid.
  std::string reason;
};

// `path` itself or, if it has grid.json, the directory of the best setting in
// it.
//   kFailedPrecondition  no setting has scores yet
absl::StatusOr<FoundRun> FindRun(const std::string& path);

}  // namespace etc

#endif  // ETC_TASKS_RUN_SUMMARY_H_
