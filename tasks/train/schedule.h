#ifndef ETC_TASKS_TRAIN_SCHEDULE_H_
#define ETC_TASKS_TRAIN_SCHEDULE_H_

#include <cstdint>
#include <string>

namespace etc {

// The course of the rate after the warm-up, in the order of the names of
// `schedule.type` (tasks/config/config_fields.h).
enum class ScheduleType { kPoly, kLinear, kCosine, kConstant, kInverseSqrt };

// The type of that name: "poly", "linear", "cosine", "constant",
// "inverse_sqrt". Throws std::invalid_argument for any other name.
ScheduleType ScheduleTypeFromName(const std::string& name);

// A linear warm-up, then a decay. With t the number of updates made so far, N,
// w, t0 and p the fields below, and s the share of the updates after the
// warm-up that is made, s = (min(t, N) - e) / (N - e), e = t0 + w (e = 0
// without a warm-up):
//
//   lr(t) = first + (rate - first) (t - t0) / w   if w > 0 and t - t0 < w
//           rate (1 - min(t, N)/N)^p   kPoly, the official one (doc/model.md
//                                      8.1), which decays from step 0
//           last + (rate - last) (1 - s)               kLinear
//           last + (rate - last) (1 + cos(pi s)) / 2   kCosine
//           rate                                       kConstant
//           rate sqrt(max(w, 1) / max(t - t0, 1))      kInverseSqrt
//
// where first and last are initial_rate and min_rate. kLinear and kInverseSqrt
// with t0 = 0 are fairseq's (doc/translation.md 4.5). So with a warm-up the
// first update has rate 0 unless first is above it, and kPoly never reaches
// `learning_rate` itself. Before t0 the rate is negative, as in the official
// code.
struct LearningRateSchedule {
  ScheduleType type = ScheduleType::kPoly;
  double learning_rate = 0;
  int64_t num_steps = 0;          // N; at least 1
  int64_t warmup_steps = 0;       // w; 0: no warm-up
  int64_t start_warmup_step = 0;  // t0
  double poly_power = 1;          // p
  double initial_rate = 0;        // first
  double min_rate = 0;            // last

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
