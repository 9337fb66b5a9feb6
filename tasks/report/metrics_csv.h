#ifndef ETC_TASKS_REPORT_METRICS_CSV_H_
#define ETC_TASKS_REPORT_METRICS_CSV_H_

#include <string>
#include <vector>

#include "tasks/report/logged_run.h"

namespace etc {

// The metrics of runs as CSV (RFC 4180, but with "\n" at the end of a line),
// for spreadsheets and data frames: a header, then a row for each update and
// seed. Columns: run (the directory of the group), seed, step, each number of
// the lines of updates (MetricsFile::curves), and the scores as
// evaluation.<metric>, in rows of updates that an evaluation came after (step
// 0: before the first). What a row has not is empty; numbers have all their
// digits.
std::string MetricsAsCsv(const std::vector<RunGroup>& groups);

}  // namespace etc

#endif  // ETC_TASKS_REPORT_METRICS_CSV_H_
