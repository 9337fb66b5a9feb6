#include "base/device_time.h"

#include <torch/cuda.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace etc {

double MedianSecondsOn(const torch::Device& device, int64_t runs,
                       const std::function<void()>& work) {
  const auto wait = [&] {
    if (device.is_cuda()) {
      torch::cuda::synchronize(device.index());
    }
  };
  std::vector<double> seconds;
  for (int64_t i = 0; i < runs; ++i) {
    wait();
    const auto start = std::chrono::steady_clock::now();
    work();
    wait();
    const std::chrono::duration<double> elapsed =
        std::chrono::steady_clock::now() - start;
    seconds.push_back(elapsed.count());
  }
  const auto middle = seconds.begin() + runs / 2;
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

double CopiedBytesPerSecond(const torch::Device& device, int64_t bytes) {
  constexpr int64_t kRuns = 11;
  const torch::NoGradGuard no_grad;
  const auto options = torch::dtype(torch::kUInt8).device(device);
  const torch::Tensor from = torch::ones({bytes}, options);
  torch::Tensor to = torch::empty({bytes}, options);
  const auto copy = [&] { to.copy_(from); };
  copy();
  return 2.0 * static_cast<double>(bytes) /
         MedianSecondsOn(device, kRuns, copy);
}

}  // namespace etc
