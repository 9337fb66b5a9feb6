#ifndef ETC_TASKS_TRAIN_ESTIMATE_H_
#define ETC_TASKS_TRAIN_ESTIMATE_H_

#include <cstdint>
#include <optional>

#include "etc/config.h"
#include "etc/step_cost.h"
#include "tasks/config/config.h"
#include "tasks/task/task.h"
#include "tasks/train/device_rates.h"
#include "tasks/train/trained_counts.h"

namespace etc {

// Rates of this machine's CPU per second, on as many threads as LibTorch uses,
// beside its present load.
struct MachineRates {
  // FLOP of the products of a linear layer, forward and backward, in the sizes
  // and the precision of a configuration.
  double linear = 0;
  // FLOP of a large product in float32.
  double product = 0;
  // Bytes read or written by a pass over memory.
  double traffic = 0;
};

// Takes about half a second.
MachineRates MeasureRates(const RunConfig& config);

// Seconds of one update with examples as long as the configuration allows.
struct StepTime {
  double linear = 0;
  double attention = 0;
  // The head's further operations, HeadCost.
  double head = 0;
  // Passes over activations and scores: CountTrainingTraffic.
  double passes = 0;
  // Passes over parameters: gradients, their norm, the optimizer.
  double parameters = 0;

  double total() const {
    return linear + attention + head + passes + parameters;
  }
};

// Estimates updates of the shape LargestUpdate(config). `parameters` are all
// numbers that are trained; `head` is TaskHead::CostOf.
StepTime EstimateStepTime(const RunConfig& config, int64_t parameters,
                          const HeadCost& head, const MachineRates& rates);
// The same on a CUDA device.
StepTime EstimateStepTime(const RunConfig& config, int64_t parameters,
                          const HeadCost& head, const DeviceRates& rates);

// Bytes by which the passes over activations on a device are compared:
// CountTrainingTraffic without carried scores, which are attention's there, and
// without the rounding of operands, which is that of linear layers.
double PassBytesOnDevice(const EtcConfig& model, const StepShape& shape);

// Operations of `head` in one update, forward and backward.
double CountHeadFlops(const EtcConfig& model, const HeadCost& head);

// Updates of one run as far as the configuration alone says: `train.steps`, or
// those of `train.epochs` with `train.num_train_examples` and without
// `train.max_examples`.
std::optional<int64_t> UpdatesWithoutData(const RunConfig& config);

// Bytes of the parts of a training run at the moment when it needs most, with
// micro-batches of the largest examples that the configuration allows. For the
// CPU, in a process that calls KeepFreedMemory, or for a CUDA device.
struct StepMemory {
  // The program itself, LibTorch with its libraries as this process has them,
  // the vocabulary; on a device 0.
  double program = 0;
  double weights = 0;
  // Copies of weights for products in bfloat16; on a device they belong to the
  // activations.
  double rounded_weights = 0;
  double gradients = 0;
  double optimizer = 0;
  // Two gradients of the token table at once, one by each of the two inputs.
  double table_gradients = 0;
  // Activations of one micro-batch.
  ActivationBytes activations;
  // Cached examples: data.cache_megabytes, the most that they may take. The
  // data decide how much they do take. On a device 0.
  double cache = 0;

  // Total of a run whose examples take no memory.
  double without_cache() const {
    return program + weights + rounded_weights + gradients + optimizer +
           table_gradients + activations.total();
  }
  double total() const { return without_cache() + cache; }
};

// `parameters` are those of encoder and head, which reads all outputs. With
// train.memory_plan "auto" all is kept (tasks/train/memory_plan.h).
StepMemory EstimateStepMemory(const RunConfig& config,
                              const TrainedCounts& parameters,
                              StepBackend backend = StepBackend::kCpu);
// The same with micro-batches of another shape, or of fewer outputs.
StepMemory EstimateStepMemory(const RunConfig& config,
                              const TrainedCounts& parameters,
                              const StepShape& shape,
                              StepBackend backend = StepBackend::kCpu);

// The same while a run evaluates, between two updates, whose gradients are
// still there: examples as large as the configuration allows,
// train.evaluation_batch_size at a time.
StepMemory EstimateEvaluationMemory(const RunConfig& config,
                                    const TrainedCounts& parameters,
                                    StepBackend backend = StepBackend::kCpu);

// The most examples at a time, up to train.evaluation_batch_size, with which an
// evaluation takes at most `limit` bytes, cached examples not counted; 0: none.
int64_t EvaluationBatchWithin(double limit, const RunConfig& config,
                              const TrainedCounts& parameters,
                              StepBackend backend = StepBackend::kCpu);

// The same as EstimateStepMemory of an encoder-decoder on the CPU, about, if
// the activations of a micro-batch take `activation_bytes`.
StepMemory EstimateEncoderDecoderMemory(const RunConfig& config,
                                        const TrainedCounts& parameters,
                                        double activation_bytes);

// The examples of one micro-batch, as large as the configuration allows, with
// all outputs.
StepShape LargestMicroBatch(const RunConfig& config);
// The same with the outputs that a head reads, or that of `task`: all, if its
// model is no encoder with a head.
StepShape LargestMicroBatch(const RunConfig& config, const TaskHead& head);
StepShape LargestMicroBatch(const RunConfig& config, const Task& task);

// The examples of one update, likewise.
StepShape LargestUpdate(const RunConfig& config);

// The storage and the precision that they are computed with.
StepOptions StepOptionsOf(const RunConfig& config,
                          StepBackend backend = StepBackend::kCpu);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_ESTIMATE_H_
