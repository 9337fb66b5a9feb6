#include "bench/device.h"

#include <torch/cuda.h>
#include <torch/types.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/torch_version.h"

namespace etc {
namespace {

#if ETC_HAS_DEVICE_ALLOCATOR
// The bytes of tensors, now and at their most.
c10::CachingAllocator::Stat TensorBytes(const torch::Device& device) {
  return c10::getDeviceAllocator(device.type())
      ->getDeviceStats(device.index())
      .allocated_bytes[static_cast<size_t>(
          c10::CachingAllocator::StatType::AGGREGATE)];
}
#endif

constexpr int64_t kRuns = 11;

double ProductsPerSecond(const torch::Device& device, torch::ScalarType type) {
  constexpr int64_t kSize = 8192;
  const auto options = torch::dtype(type).device(device);
  const torch::Tensor a = torch::randn({kSize, kSize}, options);
  const torch::Tensor b = torch::randn({kSize, kSize}, options);
  torch::Tensor c = torch::empty({kSize, kSize}, options);
  const auto multiply = [&] { torch::mm_out(c, a, b); };
  multiply();
  return 2.0 * kSize * kSize * kSize / MedianSecondsOn(device, kRuns, multiply);
}

double CopiedBytesPerSecond(const torch::Device& device) {
  constexpr int64_t kBytes = int64_t{1} << 30;
  const auto options = torch::dtype(torch::kUInt8).device(device);
  const torch::Tensor from = torch::ones({kBytes}, options);
  torch::Tensor to = torch::empty({kBytes}, options);
  const auto copy = [&] { to.copy_(from); };
  copy();
  return 2.0 * kBytes / MedianSecondsOn(device, kRuns, copy);
}

}  // namespace

double MedianSecondsOn(const torch::Device& device, int64_t runs,
                       const std::function<void()>& work) {
  std::vector<double> seconds;
  for (int64_t i = 0; i < runs; ++i) {
    torch::cuda::synchronize(device.index());
    const auto start = std::chrono::steady_clock::now();
    work();
    torch::cuda::synchronize(device.index());
    const std::chrono::duration<double> elapsed =
        std::chrono::steady_clock::now() - start;
    seconds.push_back(elapsed.count());
  }
  const auto middle = seconds.begin() + runs / 2;
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

DevicePeakMemory::DevicePeakMemory(const torch::Device& device)
    : device_(device) {
#if ETC_HAS_DEVICE_ALLOCATOR
  torch::cuda::synchronize(device_.index());
  c10::getDeviceAllocator(device_.type())->resetPeakStats(device_.index());
  before_ = TensorBytes(device_).current;
#endif
}

std::optional<int64_t> DevicePeakMemory::Bytes() const {
#if ETC_HAS_DEVICE_ALLOCATOR
  return TensorBytes(device_).peak - before_;
#else
  return std::nullopt;
#endif
}

const DeviceCeilings& CeilingsOf(const torch::Device& device) {
  static const DeviceCeilings ceilings = [&] {
    const torch::NoGradGuard no_grad;
    return DeviceCeilings{
        .bfloat16_products = ProductsPerSecond(device, torch::kBFloat16),
        .float32_products = ProductsPerSecond(device, torch::kFloat32),
        .copies = CopiedBytesPerSecond(device)};
  }();
  return ceilings;
}

}  // namespace etc
