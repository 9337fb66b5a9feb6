#ifndef ETC_TASKS_OUTPUT_RESULTS_H_
#define ETC_TASKS_OUTPUT_RESULTS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "tasks/metrics.h"
#include "tasks/output/program_version.h"

namespace etc {

// A score over all seeds.
struct ScoreSummary {
  std::string name;
  double median = 0;
  // Standard deviation of a sample (n - 1); absent for a single seed, and where
  // it is too large for a number.
  std::optional<double> standard_deviation;
};

// The median, and how the values spread. There is a value, and all are finite.
ScoreSummary SummarizeScore(std::string name, std::vector<double> values);

// {"accuracy": {"median": 0.8, "standard_deviation": 0.01}}
nlohmann::ordered_json ScoreSummariesToJson(
    const std::vector<ScoreSummary>& scores);

// Field of summary.json, grid.json and evaluations in metrics.jsonl, and its
// value where a smaller main metric is better; else the field is absent.
inline constexpr char kMainMetricDirection[] = "main_metric_direction";
inline constexpr char kLowerIsBetter[] = "min";

// Adds "main_metric" and, where a smaller one is better, kMainMetricDirection.
void AddMainMetric(const MainMetric& metric, nlohmann::ordered_json* json);

// A run as summary.json describes it. clang-tidy 14 takes the move of a JSON
// value for one that throws.
// NOLINTNEXTLINE(bugprone-exception-escape)
struct RunSummary {
  std::string directory;  // of the run
  std::string task;
  // The object of the task's name in its configuration.
  nlohmann::json options;
  std::string main_metric;
  bool lower_is_better = false;
  std::vector<ScoreSummary> scores;  // over all seeds, as the file has them
  std::set<int64_t> seeds;
  // Seeds among those that had other settings than the last start, and so are
  // in no median.
  std::set<int64_t> other_settings;
  std::map<int64_t, double> best;  // the main metric's, by seed
};

// Reads summary.json in the directory of a run.
absl::StatusOr<RunSummary> ReadRunSummary(const std::string& directory);

// The end of the run of one seed (tasks/train/trainer.h).
struct RunResult {
  // False: the run was stopped and can be resumed.
  bool finished = false;
  int64_t seed = 0;
  std::string directory;
  int64_t steps = 0;
  // Scores of the last evaluation and of the best one by the main metric; empty
  // without evaluations.
  Metrics last;
  int64_t best_step = 0;
  Metrics best;
  // The reason why it ended before its last update; empty: it did not.
  std::string end_reason;
  // The program that ended it; without a version: not noted.
  ProgramVersion program = {};
};

// The runs of all seeds of a configuration (tasks/train/train_runs.h).
struct TrainResult {
  // False: stopped, and can be resumed.
  bool finished = false;
  // One for each seed that was begun.
  std::vector<RunResult> runs;
  // Over the best evaluation of each run that summary.json has scores of
  // (WriteSummary); empty unless finished and evaluated.
  std::vector<ScoreSummary> scores;
  // The number of these runs.
  int64_t num_scored = 0;
};

// The results of the runs of an output directory, in files of it:
//
//   seed-N/result.json  of seed N, once it is finished, with its settings
//   summary.json        of all seeds in the directory that are finished,
//                       whichever start finished them
//
// summary.json is written anew from the results on disk, under the directory's
// lock (RunLock): a start with some of the seeds, or with others, takes nothing
// out of it.

// The output directory of runs, and what its files say of them all.
struct RunOutput {
  std::string directory;
  std::string task;
  // The object of the task's name in the configuration.
  nlohmann::json task_options;
  std::vector<int64_t> seeds;
  // Compares the settings (RunSettings) of two runs: true if they differ in the
  // seed at most.
  std::function<bool(const nlohmann::json&, const nlohmann::json&)>
      has_same_settings;
};

// The directory of the run of one seed.
std::string SeedDirectory(const std::string& output, int64_t seed);
// The seed of the run in a directory, by its name alone; nothing if it is not
// as SeedDirectory names them.
std::optional<int64_t> SeedOf(const std::string& directory);
// The directories of seeds in `output`, by seed; none if it cannot be read.
std::map<int64_t, std::string> SeedDirectories(const std::string& output);

// Every score that is a finite number in all of `runs`, over them.
std::vector<ScoreSummary> SummarizeScores(const std::vector<Metrics>& runs);

// Writes <run.directory>/result.json: of a run that is finished, with its
// settings (RunSettings). One that says the same of the run stays as it is:
// this start, which may have other settings, did nothing to it.
//   kInvalidArgument  there is a result.json, and it is damaged
absl::Status WriteRunResult(const RunResult& run,
                            const nlohmann::json& settings);

// Checks that `output` has no summary.json, or one that runs wrote: a JSON
// object with task, main_metric and runs.
//   kInvalidArgument  it is anything else, which a run must not replace
absl::Status CheckSummary(const std::string& output);

// Messages about summary.json, one a line, and the seeds that are not among its
// scores.
struct WrittenSummary {
  std::vector<std::string> messages;
  std::set<int64_t> left_out;
};

// Writes <output.directory>/summary.json, when `runs` have their result.json.
// Its scores are over all seeds in the directory that had `settings`, those of
// this start, or if none of `runs` has them, the settings of the last one. A
// message names each of the others.
//   kInvalidArgument  a result.json is damaged, or as of CheckSummary
absl::StatusOr<WrittenSummary> WriteSummary(const RunOutput& output,
                                            const MainMetric& main_metric,
                                            const std::vector<RunResult>& runs,
                                            const nlohmann::json& settings);

// Takes the result of `seed` back, if there is one: its run goes on. Removes
// result.json, and the seed from summary.json, or summary.json if it is of no
// other.
//   kInvalidArgument  as WriteSummary
absl::Status WithdrawResult(const RunOutput& output, int64_t seed);

}  // namespace etc

#endif  // ETC_TASKS_OUTPUT_RESULTS_H_
