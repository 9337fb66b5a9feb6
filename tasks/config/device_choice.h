#ifndef ETC_TASKS_CONFIG_DEVICE_CHOICE_H_
#define ETC_TASKS_CONFIG_DEVICE_CHOICE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace etc {

// Choice of the device that a model runs on, by name. Does without LibTorch,
// and is told the devices that exist: tasks/train/device.h asks.

// Value of `train.device` and --device: "auto" (CUDA if there is a device, else
// the CPU), "cpu", "cuda" (the one of this rank) or "cuda:1".
struct DeviceChoice {
  enum class Kind { kAuto, kCpu, kCuda };
  Kind kind = Kind::kAuto;
  // Index of the CUDA device, from 0; nothing: that of this rank.
  std::optional<int64_t> index;
};

//   kInvalidArgument  none of these: 'should be "auto", ..., but is "gpu"'
absl::StatusOr<DeviceChoice> ParseDevice(const std::string& text);

// The CUDA devices that this process sees.
struct CudaDevices {
  // True if LibTorch was built with CUDA at all.
  bool built = false;
  int64_t count = 0;
  // Major compute capability of each device: 8 for 8.6. Empty: not known.
  std::vector<int64_t> compute_capability_majors = {};
  // The local rank of this process, from 0. Each rank has the device of its
  // number, unless it sees only one: launchers may hide those of the others.
  int64_t local_rank = 0;
};

struct ChosenDevice {
  // The index of the CUDA device; nothing: the CPU.
  std::optional<int64_t> cuda;
  // The reason for this one, for people: 'train.device is "auto", and ...'.
  std::string reason;

  // "cpu" or "cuda:1", as LibTorch prints it.
  std::string name() const;
};

// The device that `text` means on a machine with `found`. `field` is what the
// user set, "train.device" or "--device", and starts each message.
//   kInvalidArgument     ParseDevice
//   kFailedPrecondition  there is no such device, or fewer than processes; the
//                        message says what there is
absl::StatusOr<ChosenDevice> ChooseDevice(const std::string& field,
                                          const std::string& text,
                                          const CudaDevices& found);

}  // namespace etc

#endif  // ETC_TASKS_CONFIG_DEVICE_CHOICE_H_
