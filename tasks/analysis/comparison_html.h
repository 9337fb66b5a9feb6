#ifndef ETC_TASKS_ANALYSIS_COMPARISON_HTML_H_
#define ETC_TASKS_ANALYSIS_COMPARISON_HTML_H_

#include <string>

#include "absl/types/span.h"
#include "tasks/analysis/attention_statistics.h"

namespace etc {

// The page of comparable analyses (tasks/analysis/comparison.h), one file: what
// they are of; for each population the quantities of each layer side by side
// with their differences from the first model, all heads of a layer in one
// violin for each model, and the grids of all heads.
std::string ComparisonHtml(absl::Span<const AttentionAnalysis> analyses);

}  // namespace etc

#endif  // ETC_TASKS_ANALYSIS_COMPARISON_HTML_H_
