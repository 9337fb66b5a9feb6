#include "tasks/train/schedule.h"

#include <algorithm>
#include <cmath>

namespace etc {

double LearningRateSchedule::At(int64_t step) const {
  if (warmup_steps > 0 && step - start_warmup_step < warmup_steps) {
    return learning_rate * static_cast<double>(step - start_warmup_step) /
           static_cast<double>(warmup_steps);
  }
  const double done = static_cast<double>(std::min(step, num_steps)) /
                      static_cast<double>(num_steps);
  return learning_rate * std::pow(1.0 - done, poly_power);
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
