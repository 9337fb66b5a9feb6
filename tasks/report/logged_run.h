#ifndef ETC_TASKS_REPORT_LOGGED_RUN_H_
#define ETC_TASKS_REPORT_LOGGED_RUN_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "tasks/metrics.h"

namespace etc {

// Values by update, sorted.
using Curve = std::vector<std::pair<int64_t, double>>;

// The evaluation after update `step`.
struct LoggedEvaluation {
  int64_t step = 0;
  Metrics metrics;  // those that are numbers
};

// The lines of a metrics.jsonl.
struct MetricsFile {
  // By the field of the lines of updates ("loss"): all that are numbers, those
  // within it by their place ("scores.l2l.largest.0", of the first layer).
  // Values that are infinite or no numbers are left out.
  std::map<std::string, Curve> curves;
  std::vector<LoggedEvaluation> evaluations;
  // Main metric by the last evaluation; nameless: it says none.
  MainMetric main_metric;
  // Updates so far.
  int64_t steps = 0;
  // Updates whose loss was infinite or not a number.
  int64_t lost_losses = 0;
  // The run ended because a value was infinite or not a number (kDivergence),
  // and has not gone on since.
  bool has_diverged = false;
  // The last line was cut, and is left out: the run goes on, or was killed.
  bool is_cut = false;
};

// Reads the file at `path`, of any size, line by line.
//   kNotFound         there is no file
//   kInvalidArgument  a line that is not the last is no JSON object with a
//                     whole number "step": "metrics.jsonl:12: ..."
absl::StatusOr<MetricsFile> ReadMetricsFile(const std::string& path);

// The run of one seed as its directory describes it, while it goes on or after
// its end. clang-tidy 14 takes the move of a JSON value for one that throws.
// NOLINTNEXTLINE(bugprone-exception-escape)
struct LoggedRun {
  std::string directory;
  int64_t seed = 0;
  MetricsFile log = {};
  // True if it has a result.json.
  bool finished = false;
  // RunSettings, of its result or its last checkpoint; null: neither is there
  // yet.
  nlohmann::json settings = {};
  // Directory of the best checkpoint; empty: there is none.
  std::string checkpoint = {};

  // True if no update of it will follow.
  bool has_ended() const { return finished || log.has_diverged; }
};

// Runs that differ in their seed at most: one output directory, or one setting
// of a grid. clang-tidy 14 as above.
// NOLINTNEXTLINE(bugprone-exception-escape)
struct RunGroup {
  // For people, unique among the groups: the last part of the directory, or all
  // of it.
  std::string name = {};
  std::string directory;
  // Empty while nothing says it.
  std::string task = {};
  // As summary.json says, or else the first run that was evaluated; nameless:
  // neither does.
  MainMetric main_metric = {};
  // By seed; each has an update or an evaluation, as of `init` alone, or
  // diverged at its first update. Settings are those of the first that has any.
  std::vector<LoggedRun> runs = {};
  nlohmann::json settings = {};
  // Seeds without either yet; none if one diverged, which ends the run.
  std::vector<int64_t> not_begun = {};

  // The mode of the residual scores; empty: not known. The mode of an
  // encoder-decoder is that of its three paths or, where they differ, all three
  // in the order encoder, decoder, cross attention: "sum, off, off".
  std::string mode() const;
  // True if no update of its seeds will follow.
  bool has_ended() const;
};

// Reads the runs that `paths` name: output directories, those of seeds in them,
// and grids. Runs of different directories whose settings differ in the seed
// alone are one group. Seeds of one directory whose settings differ are
// different groups.
//   kNotFound            a path is not there, or is the directory of no run
//   kFailedPrecondition  none of the seeds of a path has an update or an
//                        evaluation yet
//   kInvalidArgument     a path twice; a damaged file
absl::StatusOr<std::vector<RunGroup>> ReadRunGroups(
    const std::vector<std::string>& paths);

}  // namespace etc

#endif  // ETC_TASKS_REPORT_LOGGED_RUN_H_
