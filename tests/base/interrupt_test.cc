// SIGINT and SIGTERM in child processes, each of which says by its exit code
// what it saw: the first signal sets the flag, as do others of the same second,
// and one that comes later ends the process.

#include "base/interrupt.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>

namespace etc {
namespace {

constexpr int kStopped = 3;
constexpr int kGoesOn = 4;

// How a child process ends that gets the flag, and calls `act` before it looks
// at it.
int StatusAfter(const std::function<void()>& act) {
  const pid_t child = fork();
  if (child == 0) {
    const std::atomic<bool>* const stop = StopAtInterrupt();
    act();
    _exit(*stop ? kStopped : kGoesOn);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

TEST(InterruptTest, IsNotedOnce) {
  const int without = StatusAfter([] {});
  EXPECT_TRUE(WIFEXITED(without));
  EXPECT_EQ(WEXITSTATUS(without), kGoesOn);
  for (const int signal : {SIGINT, SIGTERM}) {
    for (const int times : {1, 2, 5}) {
      const int status = StatusAfter([=] {
        for (int i = 0; i < times; ++i) {
          raise(signal);
        }
      });
      ASSERT_TRUE(WIFEXITED(status)) << signal << ", " << times << " times";
      EXPECT_EQ(WEXITSTATUS(status), kStopped);
    }
  }
}

TEST(InterruptTest, EndsTheProcessIfItComesAgain) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const int status = StatusAfter([=] {
      raise(SIGINT);
      usleep(1'050'000);
      raise(signal);
    });
    ASSERT_TRUE(WIFSIGNALED(status)) << status;
    EXPECT_EQ(WTERMSIG(status), signal);
  }
}

}  // namespace
}  // namespace etc
