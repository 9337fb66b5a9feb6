// Threads beyond the bounds, and beyond those that the system lets a user
// start, in a child process.

#include "base/threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace etc {
namespace {

TEST(ThreadsTest, FindsThatThreadsStart) {
  for (const int threads : {-1, 0, 1, 8}) {
    EXPECT_TRUE(CheckThreadsStart(threads).ok()) << threads;
  }
}

TEST(ThreadsTest, SaysHowManyCanBeStarted) {
  const pid_t child = fork();
  if (child == 0) {
    // The limit does not hold for root; nobody else has this user.
    constexpr uid_t kUser = 54321;
    const struct rlimit limit = {3, 3};
    if ((geteuid() == 0 && setresuid(kUser, kUser, kUser) != 0) ||
        setrlimit(RLIMIT_NPROC, &limit) != 0) {
      _exit(2);
    }
    const absl::Status status = CheckThreadsStart(5);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(
        std::string(status.message()),
        testing::MatchesRegex("only [0-2] of 5 threads could be started: "
                              "Resource temporarily unavailable .see ulimit "
                              "-u, and pids.max of the control group."));
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(ThreadsTest, WarnsOfMoreThanTheCores) {
  EXPECT_EQ(ThreadsWarning(2, "train.threads", /*cpus=*/2), "");
  EXPECT_EQ(ThreadsWarning(1000, "train.threads", /*cpus=*/2),
            "train.threads is 1000, but this process may use 2 cores: more "
            "threads than cores are slower");
  EXPECT_THAT(ThreadsWarning(0, "train.threads", /*cpus=*/0),
              testing::StartsWith("OMP_NUM_THREADS is "));
}

TEST(ThreadsTest, NamesTheFieldOfThreadsOutOfBounds) {
  const absl::Status status =
      SetThreads(int64_t{1} << 33, "--threads").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(status.message(),
            "--threads should be at most 1024, but is 8589934592");
  EXPECT_EQ(SetThreads(-5, "threads").status(),
            absl::InvalidArgumentError("threads should be at least 0, but is "
                                       "-5"));
}

TEST(ThreadsTest, NamesTheVariableOfThreadsOutOfBounds) {
  const char* const before = std::getenv("OMP_NUM_THREADS");
  const std::string kept = before == nullptr ? "" : before;
  // Twice the second one and the last are beyond 64 bits.
  for (const char* count :
       {"1025", "4611686018427387905", "9223372036854775807"}) {
    setenv("OMP_NUM_THREADS", count, /*overwrite=*/1);
    EXPECT_EQ(SetThreads(0, "--threads").status(),
              absl::InvalidArgumentError(absl::StrCat(
                  "OMP_NUM_THREADS should be at most 1024, but is ", count)));
  }
  if (before == nullptr) {
    unsetenv("OMP_NUM_THREADS");
  } else {
    setenv("OMP_NUM_THREADS", kept.c_str(), /*overwrite=*/1);
  }
}

}  // namespace
}  // namespace etc
