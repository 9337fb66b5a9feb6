#include "tasks/train/step_memory.h"

#include "base/process_memory.h"
#include "etc/model.h"
#include "etc/model_size.h"
#include "tasks/train/precision.h"

namespace etc {
namespace {

constexpr double kRounded = 2;  // bfloat16
// What joins the libraries that a program starts with: its vocabulary, oneDNN,
// the stacks of threads, code that is read when it first runs. Measured.
constexpr double kProgramBesideLibraries = 30e6;
// All optimizers keep two moments of each gradient.
constexpr double kMoments = 2;

}  // namespace

StepShape LargestMicroBatch(const FinetuneConfig& config) {
  return {.batch = config.train.micro_batch_size,
          .long_length =
              config.model.has_long_tokens ? config.data.max_long_length : 0,
          .global_length = config.data.max_global_length};
}

StepShape LargestUpdate(const FinetuneConfig& config) {
  StepShape shape = LargestMicroBatch(config);
  shape.batch = config.train.batch_size;
  return shape;
}

StepOptions StepOptionsOf(const FinetuneConfig& config) {
  return {.storage = ScoreStorageFromName(config.train.score_storage),
          .precision = PrecisionOn(torch::kCPU, config)};
}

StepMemory EstimateStepMemory(const FinetuneConfig& config,
                              int64_t parameters) {
  const double weights = sizeof(float) * static_cast<double>(parameters);
  const ParameterCounts counts = CountParameters(config.model);
  const StepOptions options = StepOptionsOf(config);
  StepMemory memory = {
      .program =
          static_cast<double>(ResidentBytesAtStart()) + kProgramBesideLibraries,
      .weights = weights,
      .gradients = weights,
      .optimizer = kMoments * weights,
      // In addition to activations, although most of these are freed by then:
      // fragmented as they are, no block as large as the table fits.
      .table_gradients =
          2 * sizeof(float) * static_cast<double>(counts.token_embedding),
      .activations =
          EstimateActivations(config.model, LargestMicroBatch(config), options),
      .cache = 1e6 * static_cast<double>(config.data.cache_megabytes)};
  if (options.precision == LinearPrecision::kBfloat16) {
    memory.rounded_weights =
        kRounded * static_cast<double>(counts.attention + counts.feed_forward);
  }
  return memory;
}

}  // namespace etc
