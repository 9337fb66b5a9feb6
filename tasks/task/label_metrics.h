#ifndef ETC_TASKS_TASK_LABEL_METRICS_H_
#define ETC_TASKS_TASK_LABEL_METRICS_H_

#include <string>
#include <vector>

#include "absl/types/span.h"

namespace etc {

// Metrics of tasks that say a class or a number of each text (doc/glue.md 7).
// In double precision; where a formula has a divisor of 0 they are 0. Both
// arguments have the same size; each function throws std::invalid_argument if
// they do not.

// The share of labels that are equal.
double LabelAccuracy(absl::Span<const std::string> gold,
                     absl::Span<const std::string> predicted);

// 2 TP / (2 TP + FP + FN) of the label `positive`.
double LabelF1(absl::Span<const std::string> gold,
               absl::Span<const std::string> predicted,
               const std::string& positive);

// Matthews correlation of K classes, which for two is the usual one: with c of
// s predictions right, and class k predicted p_k times and true t_k times,
//
//   (c s - sum p_k t_k) / sqrt((s^2 - sum p_k^2) (s^2 - sum t_k^2))
double MatthewsCorrelation(absl::Span<const std::string> gold,
                           absl::Span<const std::string> predicted);

// Finite numbers times 2^-exponent, the largest from 0.5 on and below 1, or all
// 0. So their squares are neither infinite nor all 0; correlations are the
// same.
struct ScaledNumbers {
  std::vector<double> values;
  int exponent = 0;
};
ScaledNumbers Scaled(absl::Span<const double> numbers);

// Covariance divided by both standard deviations; 0 where one list is constant.
double PearsonCorrelation(absl::Span<const double> gold,
                          absl::Span<const double> predicted);

// Pearson's of the ranks; equal numbers have their mean rank.
double SpearmanCorrelation(absl::Span<const double> gold,
                           absl::Span<const double> predicted);

}  // namespace etc

#endif  // ETC_TASKS_TASK_LABEL_METRICS_H_
