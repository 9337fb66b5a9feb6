#ifndef ETC_TASKS_WIKIHOP_PREDICTION_H_
#define ETC_TASKS_WIKIHOP_PREDICTION_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tasks/wikihop/example.h"

namespace etc {

// Id of a question and the answer to it.
using WikihopPrediction = std::pair<std::string, std::string>;

// The index of the largest of the example's first `num_candidates()` logits,
// the first of them if there are several (wikihop spec 8). `logits` holds at
// least as many; the candidates are the first global tokens.
int64_t BestCandidate(const WikihopExample& example, const float* logits);

// The official submission: {"WH_dev_0": "norway", ...} in the order given,
// ASCII with escapes, and a newline.
std::string WikihopPredictionsToJson(
    const std::vector<WikihopPrediction>& predictions);

}  // namespace etc

#endif  // ETC_TASKS_WIKIHOP_PREDICTION_H_
