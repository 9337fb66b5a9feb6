#ifndef ETC_TASKS_TRAIN_DEVICE_RATES_H_
#define ETC_TASKS_TRAIN_DEVICE_RATES_H_

#include <torch/types.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "etc/step_cost.h"
#include "tasks/config/config.h"

namespace etc {

// Rates of a CUDA device at which it trains layers of one configuration, in
// micro-batches of the largest examples (LargestMicroBatch). A layer is timed
// as a whole; linear layers and attention also by themselves, and the rest of
// its time is that of passes.
struct DeviceRates {
  // FLOP per second of the linear layers of an encoder layer, forward and
  // backward, with rounding, biases and their gradients.
  double linear = 0;
  // FLOP per second of both softmaxes of a layer, forward and backward.
  double attention = 0;
  // Bytes per second of PassBytesOnDevice: all else in a layer. It counts
  // those of fused passes, but the device runs operation by operation, each of
  // which also has to be launched; so it is well below `copies`.
  double passes = 0;
  // Bytes per second, read and written, of a copy on the device.
  double copies = 0;
  // Seconds of clipping and the optimizer for the parameters of one layer, most
  // of which is launches of operations on small tensors.
  double layer_update = 0;
  // Numbers that are trained in one layer.
  int64_t layer_parameters = 0;
};

// The implementation of training with `config` on `device`, a CUDA device.
struct DeviceBackend {
  StepBackend backend = StepBackend::kCudaOperations;
  // The reason why there are no fused kernels; empty: there are.
  std::string reason;
};
DeviceBackend BackendOn(const torch::Device& device, const RunConfig& config);

// Measures `device`, which is a CUDA device, for about a second, or longer
// where a few layers take long. Attention is by the implementation that kAuto
// picks. Draws random numbers.
//   kResourceExhausted  a few layers do not fit into the device's memory
absl::StatusOr<DeviceRates> MeasureDevice(const RunConfig& config,
                                          const torch::Device& device);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_DEVICE_RATES_H_
