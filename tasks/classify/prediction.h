#ifndef ETC_TASKS_CLASSIFY_PREDICTION_H_
#define ETC_TASKS_CLASSIFY_PREDICTION_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "tasks/classify/example.h"

namespace etc {

// A model's prediction for a document.
struct ClassifyPrediction {
  ClassifyAnswer answer;
  // Probability of each label, in the order of the options; empty for a number.
  std::vector<std::pair<std::string, double>> probabilities = {};
};

// The prediction from the head's outputs, which are finite: the label with the
// largest one, of equals the first, and the softmax; the labels whose logistic
// function is at least `options.threshold`; or mean + deviation * output.
// Probabilities have 6 decimals, numbers 7 digits.
ClassifyPrediction DecodeClassify(absl::Span<const float> outputs,
                                  const ClassifyOptions& options);

}  // namespace etc

#endif  // ETC_TASKS_CLASSIFY_PREDICTION_H_
