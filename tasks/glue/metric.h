#ifndef ETC_TASKS_GLUE_METRIC_H_
#define ETC_TASKS_GLUE_METRIC_H_

#include <string>
#include <vector>

#include "absl/types/span.h"

namespace etc {

// GLUE's metrics (doc/glue.md 7), in double precision. Both lists have the same
// length; of empty ones each metric is 0.

using GlueLabels = absl::Span<const std::string>;

// The share of labels that are equal.
double LabelAccuracy(GlueLabels gold, GlueLabels predicted);

// 2 TP / (2 TP + FP + FN) of the label `positive`; 0 of 0 / 0.
double LabelF1(GlueLabels gold, GlueLabels predicted,
               const std::string& positive);

// Matthews correlation of any number of classes,
//
//   (c s - sum_k p_k t_k) / sqrt((s^2 - sum_k p_k^2) (s^2 - sum_k t_k^2))
//
// of s labels, c of them right, where p_k and t_k count class k in the
// predictions and in gold; 0 where the root is 0. With two classes this is
// (TP TN - FP FN) / sqrt((TP + FP) (TP + FN) (TN + FP) (TN + FN)).
double MatthewsCorrelation(GlueLabels gold, GlueLabels predicted);

// Covariance by the product of the standard deviations; 0 where one list is
// constant, for which it is not defined.
double PearsonCorrelation(absl::Span<const double> a,
                          absl::Span<const double> b);

// Pearson of the ranks, where equal values have the mean of their ranks.
double SpearmanCorrelation(absl::Span<const double> a,
                           absl::Span<const double> b);

}  // namespace etc

#endif  // ETC_TASKS_GLUE_METRIC_H_
