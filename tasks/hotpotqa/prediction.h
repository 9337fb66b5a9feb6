#ifndef ETC_TASKS_HOTPOTQA_PREDICTION_H_
#define ETC_TASKS_HOTPOTQA_PREDICTION_H_

#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "tasks/hotpotqa/raw.h"
#include "tasks/hotpotqa/record.h"

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

// The thresholds that the official program tries.
inline constexpr std::array<double, 11> kHotpotqaThresholds = {
    0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0};

}  // namespace etc

#endif  // ETC_TASKS_HOTPOTQA_PREDICTION_H_
