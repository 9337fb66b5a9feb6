#ifndef ETC_TASKS_TRAIN_STEP_MEMORY_H_
#define ETC_TASKS_TRAIN_STEP_MEMORY_H_

#include <cstdint>

#include "etc/step_cost.h"
#include "tasks/train/config.h"

namespace etc {

// Bytes of the parts of a training run at the moment when it needs most, with
// micro-batches of the largest examples that the configuration allows. For the
// CPU, in a process that calls KeepFreedMemory.
struct StepMemory {
  // The program itself, LibTorch with its libraries as this process has them,
  // the vocabulary.
  double program = 0;
  double weights = 0;
  // Copies of weights for products in bfloat16.
  double rounded_weights = 0;
  double gradients = 0;
  double optimizer = 0;
  // Two gradients of the token table at once, one by each of the two inputs.
  double table_gradients = 0;
  // Of one micro-batch.
  ActivationBytes activations;
  // Cached examples: data.cache_megabytes, the most that they may take. How
  // much they do depends on the data.
  double cache = 0;

  // Of a run whose examples take no memory.
  double without_cache() const {
    return program + weights + rounded_weights + gradients + optimizer +
           table_gradients + activations.total();
  }
  double total() const { return without_cache() + cache; }
};

// `parameters` are all numbers that are trained, those of the head too.
StepMemory EstimateStepMemory(const FinetuneConfig& config, int64_t parameters);

// The examples of one micro-batch, as large as the configuration allows.
StepShape LargestMicroBatch(const FinetuneConfig& config);

// The examples of one update, likewise.
StepShape LargestUpdate(const FinetuneConfig& config);

// The storage and the precision that they are computed with.
StepOptions StepOptionsOf(const FinetuneConfig& config);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_STEP_MEMORY_H_
