#include "tasks/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "base/fields.h"
#include "tasks/config/config_fields.h"

namespace etc {

double LearningRateSchedule::At(int64_t step) const {
  if (warmup_steps > 0 && step - start_warmup_step < warmup_steps) {
    return initial_rate + (learning_rate - initial_rate) *
                              static_cast<double>(step - start_warmup_step) /
                              static_cast<double>(warmup_steps);
  }
  if (type == ScheduleType::kInverseSqrt) {
    return learning_rate *
           std::sqrt(static_cast<double>(std::max<int64_t>(warmup_steps, 1)) /
                     static_cast<double>(
                         std::max<int64_t>(step - start_warmup_step, 1)));
  }
  if (type == ScheduleType::kConstant) {
    return learning_rate;
  }
  const int64_t begin =
      type == ScheduleType::kPoly || warmup_steps == 0
          ? 0
          : std::min(start_warmup_step + warmup_steps, num_steps);
  // Nothing is left where the warm-up takes all updates.
  const double done =
      begin == num_steps
          ? 1.0
          : static_cast<double>(std::min(step, num_steps) - begin) /
                static_cast<double>(num_steps - begin);
  switch (type) {
    case ScheduleType::kLinear:
      return min_rate + (learning_rate - min_rate) * (1.0 - done);
    case ScheduleType::kCosine:
      return min_rate + (learning_rate - min_rate) * 0.5 *
                            (1.0 + std::cos(std::numbers::pi * done));
    default:
      return learning_rate * std::pow(1.0 - done, poly_power);
  }
}

ScheduleType ScheduleTypeFromName(const std::string& name) {
  const auto& names = ConfigTable<ScheduleConfig>::kTypes;
  const auto* const found = std::find(std::begin(names), std::end(names), name);
  if (found == std::end(names)) {
    throw std::invalid_argument(
        absl::StrCat("the type of a schedule ", UnknownNameText(name, names)));
  }
  return static_cast<ScheduleType>(found - std::begin(names));
}

int64_t NumTrainingSteps(int64_t num_examples, int64_t batch_size,
                         double epochs) {
  return static_cast<int64_t>(static_cast<double>(num_examples) /
                              static_cast<double>(batch_size) * epochs);
}

int64_t NumWarmupSteps(int64_t num_steps, double proportion) {
  return static_cast<int64_t>(static_cast<double>(num_steps) * proportion);
}

}  // namespace etc
