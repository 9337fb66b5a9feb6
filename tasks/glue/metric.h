#ifndef ETC_TASKS_GLUE_METRIC_H_
#define ETC_TASKS_GLUE_METRIC_H_

#include <string>
#include <vector>

#include "absl/types/span.h"

namespace etc {

// GLUE's metrics (doc/glue.md 7) but for correlations
// (tasks/task/scoring.h), in double precision. Both lists have the same
// length; of empty ones each metric is 0.

using GlueLabels = absl::Span<const std::string>;

// The share of labels that are equal.
double LabelAccuracy(GlueLabels gold, GlueLabels predicted);

// 2 TP / (2 TP + FP + FN) of the label `positive`; 0 of 0 / 0.
double LabelF1(GlueLabels gold, GlueLabels predicted,
               const std::string& positive);

}  // namespace etc

#endif  // ETC_TASKS_GLUE_METRIC_H_
