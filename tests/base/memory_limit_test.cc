#include "base/memory_limit.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>

#include "tests/support/sanitizers.h"

namespace etc {
namespace {

TEST(MemoryLimitTest, IsThatOfSomeMachine) {
  EXPECT_GE(MemoryOfProcess(), int64_t{1} << 28);
  EXPECT_LT(MemoryOfProcess(), int64_t{1} << 50);
}

TEST(MemoryLimitDeathTest, IsWhatTheProcessMayHave) {
  if (kSanitized) {
    GTEST_SKIP() << "a sanitizer reserves more addresses than can be allowed";
  }
  const auto set_limit = [] {
    const struct rlimit limit = {200'000'000, 200'000'000};
    setrlimit(RLIMIT_DATA, &limit);
    _exit(MemoryOfProcess() == 200'000'000 ? 0 : 1);
  };
  EXPECT_EXIT(set_limit(), testing::ExitedWithCode(0), "");
}

// In bytes.
int64_t MappedAddresses() {
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * sysconf(_SC_PAGE_SIZE);
}

constexpr int64_t kMapped = 100'000'000;

bool MapWithoutMemory() {
  return mmap(nullptr, kMapped, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1,
              0) != MAP_FAILED;
}

TEST(MemoryLimitDeathTest, LeavesOutAddressesWithoutMemoryAtTheFirstCall) {
  if (kSanitized) {
    GTEST_SKIP() << "a sanitizer reserves more addresses than can be allowed";
  }
  const auto set_limit = [] {
    const bool is_mapped = MapWithoutMemory();
    const auto addresses = static_cast<rlim_t>(MappedAddresses() + 2 * kMapped);
    const struct rlimit limit = {addresses, addresses};
    const bool is_set = setrlimit(RLIMIT_AS, &limit) == 0;
    const int64_t memory = MemoryOfProcess();
    const bool is_right =
        memory > kMapped &&
        memory < static_cast<int64_t>(addresses) - kMapped * 9 / 10;
    _exit(is_mapped && is_set && is_right && MapWithoutMemory() &&
                  MemoryOfProcess() == memory
              ? 0
              : 1);
  };
  EXPECT_EXIT(set_limit(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace etc
