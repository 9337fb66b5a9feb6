#ifndef ETC_TASKS_TRAIN_STEP_MEMORY_H_
#define ETC_TASKS_TRAIN_STEP_MEMORY_H_

#include <cstdint>

#include "etc/step_cost.h"
#include "tasks/train/config.h"

namespace etc {

// Bytes of the parts of a training run at the moment when it needs most, with
// micro-batches of the largest examples that the configuration allows. On the
// CPU, in float32.
struct StepMemory {
  // The program itself, LibTorch with its libraries, the vocabulary.
  double program = 0;
  double weights = 0;
  double gradients = 0;
  double optimizer = 0;
  // Examples that are kept: data.cache_megabytes, at most.
  double cache = 0;
  // Of one micro-batch.
  ActivationBytes activations;

  double total() const {
    return program + weights + gradients + optimizer + cache +
           activations.total();
  }
};

// `parameters` are all numbers that are trained, those of the head too.
StepMemory EstimateStepMemory(const FinetuneConfig& config, int64_t parameters);

// The examples of one micro-batch, as large as the configuration allows.
StepShape LargestMicroBatch(const FinetuneConfig& config);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_STEP_MEMORY_H_
