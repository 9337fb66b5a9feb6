#ifndef ETC_TASKS_TRAIN_SCHEDULE_H_
#define ETC_TASKS_TRAIN_SCHEDULE_H_

#include <cstdint>

namespace etc {

// The official learning rate: a linear warm-up, then a polynomial decay to 0
// that counts from step 0 (doc/model.md 8.1). With t the number of updates made
// so far, N, w, t0 and p the fields below:
//
//   lr(t) = rate (t - t0) / w          if w > 0 and t - t0 < w
//           rate (1 - min(t, N)/N)^p   otherwise
//
// So the first update has rate 0, and `learning_rate` itself is never reached.
// Before t0 the rate is negative, as in the official code.
struct LearningRateSchedule {
  double learning_rate = 0;
  int64_t num_steps = 0;          // N; at least 1
  int64_t warmup_steps = 0;       // w; 0: no warm-up
  int64_t start_warmup_step = 0;  // t0
  double poly_power = 1;          // p

  // The rate of the update after `step` updates.
  double At(int64_t step) const;
};

// Updates in `epochs` passes: examples / batch_size * epochs, truncated
// (doc/model.md 8.5).
int64_t NumTrainingSteps(int64_t num_examples, int64_t batch_size,
                         double epochs);

// num_steps * proportion, truncated.
int64_t NumWarmupSteps(int64_t num_steps, double proportion);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_SCHEDULE_H_
