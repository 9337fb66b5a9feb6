#ifndef ETC_TASKS_TRAIN_RUN_RESULTS_H_
#define ETC_TASKS_TRAIN_RUN_RESULTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "tasks/metrics.h"
#include "tasks/train/config.h"
#include "tasks/train/score_summary.h"
#include "tasks/train/trainer.h"

namespace etc {

// The results of the runs of an output directory, in files of it:
//
//   seed-N/result.json  of seed N, once it is finished, with its settings
//   summary.json        of all seeds in the directory that are finished,
//                       whichever start finished them
//
// summary.json is made anew of what is on disk, under the directory's lock
// (RunLock): a start with some of the seeds, or with others, takes nothing out
// of it.

// Every score that all of `runs` have, over them.
std::vector<ScoreSummary> SummarizeScores(const std::vector<Metrics>& runs);

// Writes <run.directory>/result.json: of a run that is finished, with its
// settings (RunSettings).
absl::Status WriteRunResult(const RunResult& run,
                            const nlohmann::json& settings);

// Writes <config.output>/summary.json, when `runs` have their result.json. Its
// scores are over `runs` and over those seeds beside them that had the same
// settings. Returns a line for each of the other seeds, to say why it is not
// among these.
//   kInvalidArgument  a result.json or summary.json that is there is damaged
absl::StatusOr<std::vector<std::string>> WriteSummary(
    const FinetuneConfig& config, const std::string& main_metric,
    const std::vector<RunResult>& runs);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_RUN_RESULTS_H_
