#include "etc/process_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <memory>

namespace etc {
namespace {

constexpr size_t kBytes = size_t{96} << 20;

// Pages that the system gave this process so far.
int64_t PageFaults() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

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
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the address sanitizer has a malloc of its own";
#elif !defined(__GLIBC__)
  GTEST_SKIP() << "malloc is not glibc's";
#endif
  PagesTaken();
  const int64_t pages = PagesTaken();
  // Of 4 KiB, or one for each 2 MiB.
  ASSERT_GE(pages, static_cast<int64_t>(kBytes >> 21)) << "nothing to improve";
  KeepFreedMemory();
  PagesTaken();
  EXPECT_LT(PagesTaken(), static_cast<int64_t>(kBytes >> 21) / 4);
}

}  // namespace
}  // namespace etc
