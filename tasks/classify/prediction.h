#ifndef ETC_TASKS_CLASSIFY_PREDICTION_H_
#define ETC_TASKS_CLASSIFY_PREDICTION_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "tasks/classify/example.h"
#include "tasks/classify/record.h"

namespace etc {

// The prediction from the head's outputs, which are finite: the label with the
// largest one, of equals the first, and the softmax; the labels whose logistic
// function, rounded as below, is at least `options.threshold`; or mean +
// deviation * output. Probabilities have 6 decimals; a number has the digits
// that a float has in units of the deviation: 7, or 15 with a mean of 1.7e9 and
// a deviation of 50.
ClassifyPrediction DecodeClassify(absl::Span<const float> outputs,
                                  const ClassifyOptions& options);

}  // namespace etc

#endif  // ETC_TASKS_CLASSIFY_PREDICTION_H_
