#ifndef ETC_TASKS_TRAIN_PRECISION_H_
#define ETC_TASKS_TRAIN_PRECISION_H_

#include <torch/types.h>

#include "base/linear.h"
#include "tasks/train/config.h"

namespace etc {

// The precision of a model on `device`: `train.precision`, but float32 on a CPU
// that has no bfloat16 products; the configuration has a warning then.
LinearPrecision PrecisionOn(const torch::Device& device,
                            const FinetuneConfig& config);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_PRECISION_H_
