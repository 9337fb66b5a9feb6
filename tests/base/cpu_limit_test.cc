// CPUs by the affinity mask of a process and by a quota in a tree of files; and
// the default number of threads by OMP_NUM_THREADS in its forms.
#include "base/cpu_limit.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

// A root directory whose control group has this cpu.max.
std::string WithQuota(TemporaryDirectory* root, const std::string& cpu_max) {
  std::filesystem::create_directories(root->File("sys/fs/cgroup"));
  root->Write("sys/fs/cgroup/cpu.max", cpu_max);
  return root->path();
}

int64_t CpusToRunOn() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  EXPECT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  return CPU_COUNT(&allowed);
}

TEST(CpuLimitTest, IsTheQuotaWhereThatIsLess) {
  TemporaryDirectory root;
  EXPECT_EQ(CpusOfProcess(WithQuota(&root, "max 100000\n")), CpusToRunOn());
  EXPECT_EQ(CpusOfProcess(WithQuota(&root, "99000000 1000\n")), CpusToRunOn());
  EXPECT_EQ(CpusOfProcess(WithQuota(&root, "100000 100000\n")), 1);
  EXPECT_EQ(CpusOfProcess(WithQuota(&root, "1000 100000\n")), 1);
  if (CpusToRunOn() >= 2) {
    EXPECT_EQ(CpusOfProcess(WithQuota(&root, "110000 100000\n")), 2);
  }
}

TEST(CpuLimitDeathTest, IsWhereTheProcessMayRun) {
  const auto bind_to_one = [] {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    sched_getaffinity(0, sizeof(allowed), &allowed);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu) {
      if (CPU_ISSET(cpu, &allowed)) {
        CPU_SET(cpu, &one);
      }
    }
    sched_setaffinity(0, sizeof(one), &one);
    _exit(CpusOfProcess() == 1 ? 0 : 1);
  };
  EXPECT_EXIT(bind_to_one(), testing::ExitedWithCode(0), "");
}

TEST(CpuLimitTest, LetsTheEnvironmentDecideTheThreads) {
  const char* const before = std::getenv("OMP_NUM_THREADS");
  const std::string kept = before == nullptr ? "" : before;
  const auto threads = [](const char* text) {
    setenv("OMP_NUM_THREADS", text, /*overwrite=*/1);
    return DefaultThreads();
  };
  EXPECT_EQ(threads("7"), 7);
  EXPECT_EQ(threads("1,1"), 1);
  EXPECT_EQ(threads(" 3 , 2"), 3);
  for (const char* none : {"", "0", "-2", "many", ",4"}) {
    EXPECT_EQ(threads(none), CpusOfProcess()) << none;
  }
  unsetenv("OMP_NUM_THREADS");
  EXPECT_EQ(DefaultThreads(), CpusOfProcess());
  if (before != nullptr) {
    setenv("OMP_NUM_THREADS", kept.c_str(), /*overwrite=*/1);
  }
}

}  // namespace
}  // namespace etc
