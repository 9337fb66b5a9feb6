#ifndef ETC_TASKS_REPORT_COMPARISON_H_
#define ETC_TASKS_REPORT_COMPARISON_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tasks/metrics.h"
#include "tasks/report/logged_run.h"

namespace etc {

// All metrics of the evaluations of `groups`, each once.
std::vector<std::string> EvaluatedMetrics(absl::Span<const RunGroup> groups);

// The metric by which runs are compared: `wanted`, or without it the main
// metric of the groups, or before a seed has ended the first one evaluated.
// Its name is empty if nothing was evaluated yet. It is better in the direction
// that the runs were told (`train.main_metric_direction`), or else that its
// name says.
//   kNotFound  `wanted` is none of the metrics; with the nearest name
absl::StatusOr<MainMetric> ComparedMetric(absl::Span<const RunGroup> groups,
                                          const std::string& wanted);

// The best evaluation of a run by `metric`, of equal ones the latest; null if
// it has none with that metric.
const LoggedEvaluation* BestEvaluation(const LoggedRun& run,
                                       const MainMetric& metric);

// The metric `name` of each run's best evaluation by `metric`, by seed; runs
// without it are left out.
std::vector<double> SeedScores(const RunGroup& group, const MainMetric& metric,
                               const std::string& name);

// Index of the run that stands for its group: of the best evaluations by
// `metric` it has the middle one, of an even number the lower of both. Nothing
// without evaluations.
std::optional<size_t> MiddleRun(const RunGroup& group,
                                const MainMetric& metric);

// The result of comparing seeds with residual scores to seeds without.
enum class Certainty {
  kNothing,  // a single seed on a side, or none
  kOverlap,  // the ranges of the seeds overlap
  kHint,     // apart, by chance in more than 1 of 20 reports
  kLikely,   // apart, by chance in at most 1 of 20 reports
};
// A report that compares several settings makes `tests` such comparisons: the
// chance of each is multiplied by their number (Bonferroni).
Certainty CertaintyOf(absl::Span<const double> with,
                      absl::Span<const double> without, int64_t tests);

// Probability that the ranges of `a` and `b` values of one continuous
// distribution lie apart: 2 / C(a + b, a).
double ChanceApart(int64_t a, int64_t b);

// A comparison for people.
struct Verdict {
  // "Yes: sum is better than off here, and that is fairly sure."
  std::string headline;
  // Medians, their difference, ranges, numbers of seeds and caveats.
  std::string detail;
};

// Compares each group with residual scores to groups without ("off"): those
// whose settings differ in nothing else or, where it has none, all; only the
// former are answered with yes or no, and come first. The values are
// SeedScores. At most 12 verdicts and the number of the others, and one that
// names runs that diverged before their mode was known; without comparisons one
// that says why.
std::vector<Verdict> CompareModes(absl::Span<const RunGroup> groups,
                                  const MainMetric& metric);

// A field whose value differs between groups.
struct DifferingField {
  std::string name;  // "train.learning_rate"
  // One for each group, as JSON; files as their paths. "unknown": the group has
  // no settings yet; "absent": they lack the field.
  std::vector<std::string> values = {};
};
std::vector<DifferingField> DifferingFields(absl::Span<const RunGroup> groups);

}  // namespace etc

#endif  // ETC_TASKS_REPORT_COMPARISON_H_
