#ifndef ETC_BASE_DEVICE_TIME_H_
#define ETC_BASE_DEVICE_TIME_H_

#include <torch/types.h>

#include <cstdint>
#include <functional>

namespace etc {

// Time on a device; the work of a CUDA device goes on after a call of it has
// returned.

// Median of the seconds from an idle device to an idle device, of `runs` runs
// of `work`, which should have run before.
double MedianSecondsOn(const torch::Device& device, int64_t runs,
                       const std::function<void()>& work);

// Bytes per second, read and written, of copies of `bytes` bytes on the device:
// the median of some, without gradients.
double CopiedBytesPerSecond(const torch::Device& device, int64_t bytes);

}  // namespace etc

#endif  // ETC_BASE_DEVICE_TIME_H_
