#ifndef ETC_BENCH_DEVICE_H_
#define ETC_BENCH_DEVICE_H_

#include <torch/types.h>

#include <cstdint>
#include <optional>

namespace etc {

// Memory of a CUDA device, and its ceilings; time is base/device_time.h's.

// Bytes of tensors on a device at their most since construction, more than
// before it. Nothing where LibTorch does not say (before 2.9).
class DevicePeakMemory {
 public:
  explicit DevicePeakMemory(const torch::Device& device);
  std::optional<int64_t> Bytes() const;

 private:
  const torch::Device device_;
  int64_t before_ = 0;
};

// Ceilings that programs on a device are compared with.
struct DeviceCeilings {
  // FLOP per second of a product 8192 x 8192 x 8192 in bfloat16.
  double bfloat16_products = 0.0;
  // The same in float32, by LibTorch's default: without TensorFloat-32.
  double float32_products = 0.0;
  // Bytes per second, read and written, of a copy of 1 GiB on the device.
  double copies = 0.0;
};
// Measured once for each process; `device` is always the same.
const DeviceCeilings& CeilingsOf(const torch::Device& device);

}  // namespace etc

#endif  // ETC_BENCH_DEVICE_H_
