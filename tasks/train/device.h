#ifndef ETC_TASKS_TRAIN_DEVICE_H_
#define ETC_TASKS_TRAIN_DEVICE_H_

#include <c10/core/DeviceGuard.h>
#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/bfloat16.h"
#include "base/linear.h"
#include "etc/weights/checkpoint.h"
#include "tasks/config/config.h"
#include "tasks/config/device_choice.h"
#include "tasks/distributed/process_group.h"

namespace etc {

// The devices that LibTorch finds, for the process of that number among those
// of a run on this machine.
CudaDevices FindCudaDevices(int64_t local_rank = 0);

// The settings that choose and describe a model's device.
struct DeviceSettings {
  std::string device = "auto";     // train.device
  std::string precision = "fp32";  // train.precision
  // Features of a head of attention; 0: not known, and taken to be few.
  int64_t head_size = 0;
};
DeviceSettings DeviceSettingsOf(const RunConfig& config);

// The device of a run's model.
struct RunDevice {
  torch::Device device = torch::kCPU;
  // The choice and its reason, a line for people: 'device: cpu (train.device is
  // ...)'; of a CUDA device with AttentionOn.
  std::string message;
  // PrecisionWarning; may be empty.
  std::string warning;
};

// Warns of a train.precision "bf16" that `device`, a CPU, computes slowly or in
// float32 (PrecisionOn); empty: there is nothing to warn of. The first call
// with AVX512-BF16 and without AMX times a product in both precisions, for some
// 0.2 s.
std::string PrecisionWarning(const torch::Device& device,
                             const std::string& precision);

// The same of a CPU with such products. `bfloat16_time`, of kFast alone: the
// seconds of a product in bfloat16 over those of the same in float32.
std::string Bfloat16Warning(kernels::Bfloat16Products products,
                            double bfloat16_time);

// Describes for people how a model on a CUDA device computes attention of heads
// with `head_size` features: "attention by fused kernels", or "attention by
// tensor operations: " and the reason.
std::string AttentionOn(const torch::Device& device, int64_t head_size);

// The device that `settings.device` means among `found`; `field` is its name in
// messages: "train.device", or "--device" where that set it.
//   kInvalidArgument     train.precision is bf16, which that device has not
//   others               those of ChooseDevice
absl::StatusOr<RunDevice> DeviceOfRun(
    const DeviceSettings& settings,
    const CudaDevices& found = FindCudaDevices(),
    const std::string& field = "train.device");

// Bytes of a CUDA device's memory.
struct DeviceMemory {
  int64_t free = 0;
  int64_t total = 0;
};

// Memory of `device`, counting that which other processes use; nothing for the
// CPU, and if the CUDA runtime does not say.
std::optional<DeviceMemory> MemoryOf(const torch::Device& device);

// Makes a CUDA device the current one of this thread as long as it lives, so
// that LibTorch uses it where it uses "the" device, as for pinning memory. Does
// nothing for the CPU.
class CurrentDevice {
 public:
  explicit CurrentDevice(const torch::Device& device) {
    if (device.is_cuda()) {
      guard_.reset_device(device);
    }
  }

 private:
  c10::OptionalDeviceGuard guard_;
};

// The device that all of `parameters` are on; the CPU if there are none.
// Throws c10::Error if they are on several.
torch::Device DeviceOf(const NamedTensors& parameters);

// The precision of a model on `device`: `train.precision`, but float32 on a CPU
// that has no bfloat16 products.
LinearPrecision PrecisionOn(const torch::Device& device,
                            const RunConfig& config);

// The CUDA devices that LibTorch finds, for this rank. `group` may be null.
CudaDevices CudaDevicesOf(const ProcessGroup* group);

// The device of this rank, on which gradients are all-reduced by
// `train.backend`. `group` may be null.
//   kFailedPrecondition  NCCL is asked for on a CPU, or without NCCL
//   others               those of DeviceOfRun
absl::StatusOr<RunDevice> JoinDevice(const RunConfig& config,
                                     ProcessGroup* group);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_DEVICE_H_
