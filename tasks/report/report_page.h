#ifndef ETC_TASKS_REPORT_REPORT_PAGE_H_
#define ETC_TASKS_REPORT_REPORT_PAGE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tasks/report/logged_run.h"
#include "tasks/task/judged_records.h"

namespace etc {

// Predictions of the middle seed (MiddleRun) of one group.
struct GroupPredictions {
  // Index of the group.
  size_t group = 0;
  int64_t seed = 0;
  // Texts of records are shown of the first group alone; the others may lack
  // them.
  JudgedRecords judged;
};

// Contents of a report.
struct Report {
  std::vector<RunGroup> groups;
  // The metric by which runs are compared (ComparedMetric); may be empty.
  MainMetric metric;
  std::vector<GroupPredictions> predictions;
  // Remarks at the end, such as why a group has no predictions.
  std::vector<std::string> notes;
};

// One line of a chart: over the runs of a group the median of the curves, with
// their range as a band. Updates are divided into at most `bins` equal parts of
// `steps`, in each of which a curve is its mean; x is the last update of a
// part.
struct CurveBand {
  int64_t step = 0;
  double median = 0;
  double low = 0;
  double high = 0;
};
std::vector<CurveBand> BandOf(const std::vector<const Curve*>& curves,
                              int64_t steps, int64_t bins);

// A page of HTML with nothing from elsewhere (tasks/pages/html_page.h).
std::string ReportPage(const Report& report);

}  // namespace etc

#endif  // ETC_TASKS_REPORT_REPORT_PAGE_H_
