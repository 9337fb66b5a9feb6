#include "bench/device.h"

#include <torch/cuda.h>
#include <torch/types.h>

#include "base/device_time.h"
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
constexpr int64_t kCopiedBytes = int64_t{1} << 30;

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

}  // namespace

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
        .copies = CopiedBytesPerSecond(device, kCopiedBytes)};
  }();
  return ceilings;
}

}  // namespace etc
