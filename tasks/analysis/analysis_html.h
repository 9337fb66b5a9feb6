#ifndef ETC_TASKS_ANALYSIS_ANALYSIS_HTML_H_
#define ETC_TASKS_ANALYSIS_ANALYSIS_HTML_H_

#include <string>
#include <utility>
#include <vector>

#include "tasks/analysis/attention_statistics.h"

namespace etc {

// The page of an analysis, attention.html: grids of violins as in Figures 4 to
// 6 of the RealFormer paper (top layer first; entropy by rank of the median,
// divergence by the head's index), masses of blocks, curves by distance and a
// table, as inline SVG in the frame of tasks/pages/html_page.h.
std::string AnalysisHtml(const AttentionAnalysis& analysis);

// The grids alone, each an SVG file in the colours of print, by its name:
// "entropy_<population>.svg", and with several layers "jsd_<population>.svg".
// A population without rows has none.
std::vector<std::pair<std::string, std::string>> AnalysisPictures(
    const AttentionAnalysis& analysis);

}  // namespace etc

#endif  // ETC_TASKS_ANALYSIS_ANALYSIS_HTML_H_
