#include "tasks/train/step_memory.h"

#include "etc/model.h"

namespace etc {
namespace {

constexpr double kFloat = 4;
// Measured with Debian's LibTorch 1.13, which brings several hundred shared
// libraries.
constexpr double kProgram = 180e6;
// All optimizers keep two moments of each gradient.
constexpr double kMoments = 2;

}  // namespace

StepShape LargestMicroBatch(const FinetuneConfig& config) {
  return {.batch = config.train.micro_batch_size,
          .long_length = config.data.max_long_length,
          .global_length = config.data.max_global_length};
}

StepMemory EstimateStepMemory(const FinetuneConfig& config,
                              int64_t parameters) {
  const double weights = kFloat * static_cast<double>(parameters);
  return {.program = kProgram,
          .weights = weights,
          .gradients = weights,
          .optimizer = kMoments * weights,
          .cache = 1e6 * static_cast<double>(config.data.cache_megabytes),
          .activations = EstimateActivations(
              config.model, LargestMicroBatch(config),
              ScoreStorageFromName(config.train.score_storage))};
}

}  // namespace etc
