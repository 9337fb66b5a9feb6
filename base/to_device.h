#ifndef ETC_BASE_TO_DEVICE_H_
#define ETC_BASE_TO_DEVICE_H_

#include <torch/types.h>

namespace etc {

// `tensor` on `device`: itself if it is there, or undefined. From the CPU to a
// CUDA device it goes through pinned memory, and is queued behind the device's
// current work instead of waiting for it, so that the batch of the next step is
// made and sent meanwhile.
torch::Tensor ToDevice(const torch::Tensor& tensor,
                       const torch::Device& device);

}  // namespace etc

#endif  // ETC_BASE_TO_DEVICE_H_
