#ifndef ETC_TASKS_TRAIN_TRAIN_STEP_RESULT_H_
#define ETC_TASKS_TRAIN_TRAIN_STEP_RESULT_H_

#include <cstdint>
#include <string>

namespace etc {

// Numbers of one update.
struct TrainStepResult {
  double loss = 0;
  double learning_rate = 0;
  // Before clipping.
  double gradient_norm = 0;
  // 2-norms of what was added to the parameters, and of the parameters after
  // it, each taken as one vector.
  double update_norm = 0;
  double weight_norm = 0;
  int64_t examples = 0;
  int64_t tokens = 0;  // long and global, without padding
  // NormWarning of these numbers; empty: nothing is wrong.
  std::string warning;
  // TrainableModel::Warning after it.
  std::string model_warning;
};

// Beyond these bounds an update has likely ruined the model: one that is longer
// than the parameters that it changes (update_norm > kMaxRelativeUpdate times
// their norm before), and parameters whose root mean square is larger than
// kMaxRootMeanSquare, when random ones have one of about initializer_range.
inline constexpr double kMaxRelativeUpdate = 1;
inline constexpr double kMaxRootMeanSquare = 10;

// A message about the norms of `update`, the one after `step` others, which
// changed `count` parameters of norm `norm_before`; empty if they are within
// the bounds.
std::string NormWarning(const TrainStepResult& update, int64_t step,
                        double norm_before, int64_t count);

// Beyond this magnitude of residual scores, gradients from scores that were
// brought back by subtraction (ScoreStorage::kReverse) are off by more than
// about 1e-4 of their size: by 1e-7 of the score.
inline constexpr double kMaxReversedScore = 1000;

// A message about the largest magnitude of a score in a run with kReverse;
// empty if it is within the bound.
std::string ScoreWarning(double largest);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_TRAIN_STEP_RESULT_H_
