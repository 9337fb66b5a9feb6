#include "base/memory_limit.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

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
  const auto set_limit = [](decltype(RLIMIT_AS) resource) {
    const struct rlimit limit = {200'000'000, 200'000'000};
    setrlimit(resource, &limit);
    _exit(MemoryOfProcess() == 200'000'000 ? 0 : 1);
  };
  EXPECT_EXIT(set_limit(RLIMIT_AS), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(set_limit(RLIMIT_DATA), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace etc
