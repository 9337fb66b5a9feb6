#ifndef ETC_TASKS_GLUE_OVERALL_H_
#define ETC_TASKS_GLUE_OVERALL_H_

#include <vector>

#include "absl/status/statusor.h"
#include "tasks/metrics.h"
#include "tasks/output/results.h"

namespace etc {

// "Overall" of RealFormer's Tables 3 and 5 (doc/glue.md 9): of each task the
// mean of its metrics, each the median over the seeds of a run, and then the
// mean of tasks, in which the two dev files of MNLI count as two and WNLI does
// not count. `runs` has one for each of the eight tasks. The score "overall"
// comes last, after the nine numbers that it is the mean of.
//   kInvalidArgument  a task has no run or several; a run is of no such task,
//                     or has not all metrics
absl::StatusOr<Metrics> GlueOverall(const std::vector<RunSummary>& runs);

}  // namespace etc

#endif  // ETC_TASKS_GLUE_OVERALL_H_
