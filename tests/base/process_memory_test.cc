#include "base/process_memory.h"

#include <c10/core/Allocator.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/sanitizers.h"

namespace etc {
namespace {

constexpr size_t kBytes = size_t{96} << 20;

// Takes a large block, writes to all of it, frees it; how many pages that
// needed.
int64_t PagesTaken() {
  const int64_t before = PageFaults();
  const std::unique_ptr<char[]> block(new char[kBytes]);
  std::memset(block.get(), 1, kBytes);
  EXPECT_EQ(block[kBytes / 2], 1);
  return PageFaults() - before;
}

TEST(ProcessMemoryTest, TakesTheSameBlockOnlyOnceFromTheSystem) {
#if !defined(__GLIBC__)
  GTEST_SKIP() << "malloc is not glibc's";
#endif
  if (kAddressSanitized) {
    GTEST_SKIP() << "the address sanitizer has a malloc of its own";
  }
  PagesTaken();
  const int64_t pages = PagesTaken();
  // Pages are of 4 KiB, or one for each 2 MiB.
  ASSERT_GE(pages, static_cast<int64_t>(kBytes >> 21)) << "nothing to improve";
  KeepFreedMemory();
  PagesTaken();
  EXPECT_LT(PagesTaken(), static_cast<int64_t>(kBytes >> 21) / 4);
}

// Holes between tensors that stay: what a training step leaves, and the next
// one is to fill. With posix_memalign of glibc 2.36 the heap grows by all of
// them.
TEST(ProcessMemoryTest, TensorsFitWhereOthersOfTheirSizeHaveBeen) {
#if !defined(__GLIBC__)
  GTEST_SKIP() << "malloc is not glibc's";
#else
  if (kSanitized) {
    GTEST_SKIP() << "the sanitizer has a malloc of its own";
  }
  KeepFreedMemory();
  constexpr int64_t kFloats = 1 << 20;
  constexpr size_t kHoles = 16;
  std::vector<torch::Tensor> tensors(2 * kHoles);
  for (torch::Tensor& tensor : tensors) {
    tensor = torch::empty({kFloats});
  }
  for (size_t i = 0; i < kHoles; ++i) {
    tensors[2 * i] = torch::Tensor();
  }
  const size_t before = mallinfo2().arena;
  for (size_t i = 0; i < kHoles; ++i) {
    tensors[2 * i] = torch::empty({kFloats});
  }
  EXPECT_EQ(mallinfo2().arena, before);
#endif
}

TEST(ProcessMemoryTest, TensorsAreAlignedToCacheLines) {
  KeepFreedMemory();
  for (const int64_t bytes : {1, 15, 63, 64, 65, 1000, 1 << 20}) {
    const torch::Tensor tensor = torch::zeros({bytes}, torch::kUInt8);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data_ptr()) % 64, 0U) << bytes;
    EXPECT_EQ(tensor.sum().item<int64_t>(), 0) << bytes;
  }
  EXPECT_EQ(torch::empty({0}).numel(), 0);
}

// LibTorch takes memory so for oneDNN, which computes the exact GELU.
TEST(ProcessMemoryTest, GivesMemoryThatItsAddressFrees) {
  KeepFreedMemory();
  c10::Allocator* const allocator = c10::GetAllocator(c10::kCPU);
  for (const size_t bytes : {1, 64, 1 << 20}) {
    void* const memory = allocator->raw_allocate(bytes);
    ASSERT_NE(memory, nullptr);
    std::memset(memory, 1, bytes);
    allocator->raw_deallocate(memory);
  }
  allocator->raw_deallocate(allocator->raw_allocate(0));
  const torch::Tensor input = torch::linspace(-3, 3, 1 << 14);
  EXPECT_TRUE(torch::allclose(torch::gelu(input),
                              0.5 * input * (1 + (input / std::sqrt(2)).erf()),
                              1e-5, 1e-6));
}

TEST(ProcessMemoryTest, SaysHowMuchThereWasNoMemoryFor) {
  if (kSanitized) {
    GTEST_SKIP() << "the sanitizer has a malloc of its own";
  }
  KeepFreedMemory();
  try {
    torch::empty({int64_t{1} << 60}, torch::kUInt8);
    FAIL() << "there should not be that much";
  } catch (const c10::Error& error) {
    EXPECT_NE(std::string(error.what()).find("1152921504606846976 bytes"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace etc
