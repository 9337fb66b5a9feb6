#ifndef ETC_TASKS_ANALYSIS_COMPARISON_RUN_H_
#define ETC_TASKS_ANALYSIS_COMPARISON_RUN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tasks/analysis/analysis_run.h"
#include "tasks/analysis/attention_statistics.h"

namespace etc {

// Several models side by side (`realetc attention --compare`,
// doc/attention_analysis.md).
struct AttentionComparisonOptions {
  // Two or more; differences are from the first. Without data and text: files
  // attention.json of earlier analyses, or the directories that have them. Else
  // the checkpoints to analyse.
  std::vector<std::string> inputs;
  // Options of each analysis, but for its `checkpoint`. Its `output` is the
  // directory of comparison.html, comparison.json and comparison.csv, and with
  // data or text of the directories 1, 2, ... with the files of each analysis.
  AttentionAnalysisOptions each;
};

// Reads or makes the analyses, and writes the files, each whole or not at all.
// All inputs are looked at before the first model runs.
//   kInvalidArgument  fewer than two inputs; checkpoints of different tasks;
//                     errors of CheckComparable and ParseAnalysis
// and those of AnalyseAttention.
absl::StatusOr<std::vector<AttentionAnalysis>> CompareAttention(
    const AttentionComparisonOptions& options);

}  // namespace etc

#endif  // ETC_TASKS_ANALYSIS_COMPARISON_RUN_H_
