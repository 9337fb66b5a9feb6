#ifndef ETC_TASKS_ANALYSIS_ANALYSIS_READER_H_
#define ETC_TASKS_ANALYSIS_ANALYSIS_READER_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tasks/analysis/attention_statistics.h"

namespace etc {

// The analysis that AnalysisJson wrote, as far as comparisons need it: model,
// data, and of each population its distributions of entropy and divergence and
// its masses. Sums that these do not have stay 0. `source` starts each message.
//   kInvalidArgument  it is no such file, with the field and what was expected
absl::StatusOr<AttentionAnalysis> ParseAnalysis(absl::string_view text,
                                                const std::string& source);

// The same of the file at `path`, or of attention.json in the directory there.
//   kNotFound  there is none
absl::StatusOr<AttentionAnalysis> ReadAnalysis(const std::string& path);

}  // namespace etc

#endif  // ETC_TASKS_ANALYSIS_ANALYSIS_READER_H_
