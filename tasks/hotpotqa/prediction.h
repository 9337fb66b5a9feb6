#ifndef ETC_TASKS_HOTPOTQA_PREDICTION_H_
#define ETC_TASKS_HOTPOTQA_PREDICTION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "tasks/hotpotqa/example.h"
#include "tasks/hotpotqa/raw.h"
#include "tasks/task/benchmark.h"
#include "tasks/task/scoring.h"

namespace etc {

// See tasks/task/benchmark.h.
template <typename T>
struct HotpotqaLogits {
  T supporting_facts;  // [G]
  T answer_type;       // [3], by HotpotqaAnswerType
  // [2, L], begin and end, or [3, L], the classes of HotpotqaBio. Behind the
  // example's own tokens is padding of its batch.
  T answer;

  static constexpr auto kMembers =
      std::make_tuple(&HotpotqaLogits::supporting_facts,
                      &HotpotqaLogits::answer_type, &HotpotqaLogits::answer);
};

// A prediction for one question, by a model or from a file. A file may lack
// either.
struct HotpotqaPrediction {
  std::optional<std::string> answer;
  std::optional<std::vector<HotpotqaFact>> facts;
  // The same by each of HotpotqaThresholds(), where the best of them is looked
  // for.
  std::vector<HotpotqaPrediction> by_threshold = {};
};

// The thresholds that the official program tries: 0.0, 0.1, ..., 1.0.
const std::vector<double>& HotpotqaThresholds();

// Facts and answer (doc/hotpotqa.md 6). Facts are the sentences with a
// probability of at least the threshold, in the order of the context. An answer
// that is neither yes nor no is the span with the highest p_begin * p_end (or
// mean probability of its classes) within one sentence or title that is
// predicted to be a supporting fact; the later one of equals. If there is none,
// it comes from any sentence or title, and with `official_compatibility` it is
// empty. That also limits the search to the 50 best begins and ends, and loses
// an answer marked by classes up to the end of a full long input.
HotpotqaPrediction DecodeHotpotqa(const HotpotqaExample& example,
                                  const HotpotqaLogits<LogitRow>& logits,
                                  const TaskContext<HotpotqaOptions>& context);

// The official submission, {"answer": {"<id>": "text"}, "sp": {"<id>":
// [["title", 0]]}}, by id, ASCII with escapes, and a newline.
std::string HotpotqaPredictionsToJson(
    const ById<HotpotqaPrediction>& predictions);

}  // namespace etc

#endif  // ETC_TASKS_HOTPOTQA_PREDICTION_H_
