#ifndef ETC_TASKS_TRAIN_PRECISION_H_
#define ETC_TASKS_TRAIN_PRECISION_H_

#include "base/linear.h"
#include "tasks/train/config.h"

namespace etc {

// What `train.precision` comes to here: bfloat16 where the CPU has products of
// it. The configuration has a warning where this is not what it asks for.
LinearPrecision PrecisionOfThisCpu(const FinetuneConfig& config);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_PRECISION_H_
