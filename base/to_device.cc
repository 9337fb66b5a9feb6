#include "base/to_device.h"

namespace etc {

torch::Tensor ToDevice(const torch::Tensor& tensor,
                       const torch::Device& device) {
  if (!tensor.defined()) {
    return tensor;
  }
  if (device.is_cuda() && tensor.device().is_cpu() && tensor.numel() > 0) {
    // An expanded tensor cannot be pinned as it is.
    const torch::Tensor dense =
        tensor.is_non_overlapping_and_dense() ? tensor : tensor.contiguous();
    return dense.pin_memory().to(device, /*non_blocking=*/true);
  }
  return tensor.to(device);
}

}  // namespace etc
