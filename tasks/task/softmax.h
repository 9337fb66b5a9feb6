#ifndef ETC_TASKS_TASK_SOFTMAX_H_
#define ETC_TASKS_TASK_SOFTMAX_H_

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/types/span.h"

namespace etc {

// exp(x) / sum of exp(x), computed and added up in Number: float as official
// scripts do, or double. At least one logit.
template <typename Number>
std::vector<Number> Softmax(absl::Span<const float> logits) {
  const Number largest = *std::max_element(logits.begin(), logits.end());
  std::vector<Number> probabilities;
  probabilities.reserve(logits.size());
  Number sum = 0;
  for (const float logit : logits) {
    sum += probabilities.emplace_back(std::exp(logit - largest));
  }
  for (Number& probability : probabilities) {
    probability /= sum;
  }
  return probabilities;
}

}  // namespace etc

#endif  // ETC_TASKS_TASK_SOFTMAX_H_
