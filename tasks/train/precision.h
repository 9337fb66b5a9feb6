#ifndef ETC_TASKS_TRAIN_PRECISION_H_
#define ETC_TASKS_TRAIN_PRECISION_H_

#include "base/linear.h"
#include "tasks/train/config.h"

namespace etc {

// The precision of linear layers on this CPU: `train.precision`, but float32 if
// the CPU has no bfloat16 products; the configuration has a warning then.
LinearPrecision PrecisionOfThisCpu(const FinetuneConfig& config);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_PRECISION_H_
