#include "tasks/data/to_device.h"

namespace etc {

torch::Tensor ToDevice(const torch::Tensor& tensor,
                       const torch::Device& device) {
  if (device.is_cuda() && tensor.device().is_cpu() && tensor.numel() > 0) {
    return tensor.pin_memory().to(device, /*non_blocking=*/true);
  }
  return tensor.to(device);
}

}  // namespace etc
