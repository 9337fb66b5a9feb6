#ifndef ETC_TASKS_OUTPUT_GRID_RESULTS_H_
#define ETC_TASKS_OUTPUT_GRID_RESULTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "tasks/output/results.h"

namespace etc {

// Result of one setting of a grid (tasks/config/grid.h).
// clang-tidy 14 takes the move of a JSON value for one that throws.
// NOLINTNEXTLINE(bugprone-exception-escape)
struct SettingResult {
  std::string name;
  nlohmann::json values;  // by field
  TrainResult result;     // without runs: not begun
  // The reason why it has no result, if a loss became infinite or not a number;
  // else empty.
  std::string diverged;
};

struct GridResult {
  // False: stopped, and can be resumed. True if some settings have diverged and
  // all others are finished.
  bool finished = false;
  std::string main_metric;
  bool lower_is_better = false;
  // All, in order; without a grid one that has no name.
  std::vector<SettingResult> settings;
};

// The score of a setting by the main metric; null if it has none.
const ScoreSummary* MainScore(const GridResult& grid,
                              const SettingResult& setting);

// The setting with the best median of the main metric, of equal ones the first;
// nothing if none was finished and evaluated.
std::optional<size_t> BestSetting(const GridResult& result);
// The settings with the best median of the main metric, in order; empty if none
// was finished and evaluated.
std::vector<size_t> BestSettings(const GridResult& result);

// The contents of grid.json. "directory" is beside it; "scores" are those of
// summary.json, and null where a setting is not finished; where it has
// diverged, "diverged" says how:
//
//   {"task": "glue", "main_metric": "accuracy", "finished": true,
//    "best": "train.epochs=3",
//    "settings": [{"values": {"train.epochs": 3},
//                  "directory": "train.epochs=3",
//                  "scores": {"accuracy": {"median": 0.8,
//                                          "standard_deviation": 0.01}}}]}
nlohmann::ordered_json GridToJson(const GridResult& result,
                                  const std::string& task);

// A value of a setting as people write it: "2" for 2.0, text without quotes.
std::string GridValueText(const nlohmann::json& value);

// A line for each setting: its values, the median of the main metric and, of
// several seeds, its standard deviation; "best" behind the best one and "equal"
// behind others with its median:
//
//   train.epochs  train.learning_rate  accuracy  deviation
//              2                2e-05    0.7921     0.0102
//              3                2e-05    0.8013     0.0091  best
std::string FormatGridTable(const GridResult& result);

// <output.directory>/grid.json (GridToJson) describes all settings that the
// directory has, whichever start ran them: those of this start's grid, and
// those of earlier grids there, which stay where they are in it.

// A directory that may be that of a grid.
struct FoundRun {
  std::string directory;
  // "the best of 4 settings, median accuracy 0.7921"; empty without a grid.
  std::string reason;
};

// `path` itself or, if it has grid.json, the directory of the best setting in
// it: of those with scores in grid.json, by the scores that their summary.json
// has now, for a setting may have gone on alone since.
//   kFailedPrecondition  no setting has scores yet
//   kInvalidArgument     grid.json or a summary.json is damaged
absl::StatusOr<FoundRun> FindRun(const std::string& path);

// Checks that the output directory has no grid.json, or a valid one of the same
// task and main metric.
//   kInvalidArgument  the file is damaged
//   kAlreadyExists    it is of another task or main metric
absl::Status CheckGridFile(const RunOutput& output,
                           const std::string& main_metric);

// Scores of settings that this start has not finished yet. They are withdrawn
// if it allows changes: they may be of other data or fewer updates.
enum class EarlierScores { kKept, kWithdrawn };

// Writes the file anew from the results on disk, under the directory's lock
// (RunLock): scores are those of each setting's summary.json. `grid` has the
// settings of this start as far as it has come; an earlier divergence of a
// setting that this start has not begun is kept. Returns the number of other
// settings in the file that have not diverged. Errors as of CheckGridFile.
absl::StatusOr<int64_t> WriteGridFile(const RunOutput& output,
                                      const GridResult& grid,
                                      EarlierScores earlier_scores);

}  // namespace etc

#endif  // ETC_TASKS_OUTPUT_GRID_RESULTS_H_
