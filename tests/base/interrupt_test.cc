// Signals that stop a program, in child processes, each of which says by its
// exit code what it saw: the first signal sets the flag, as do others of the
// same second; a SIGINT or SIGTERM that comes later than another ends the
// process; and a signal that was ignored stays ignored.

#include "base/interrupt.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>

namespace etc {
namespace {

constexpr int kStopped = 3;
constexpr int kGoesOn = 4;

// Returns the exit status of a child process that gets the flag, and calls
// `act` before it looks at it.
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

// StatusAfter an act whose signals come within a second of one another: a busy
// machine may hold the child back between two of them, so a child that took
// longer proves nothing and is tried again.
int StatusAfterAtOnce(const std::function<void()>& act) {
  int status = 0;
  for (int tries = 0; tries < 100; ++tries) {
    const auto start = std::chrono::steady_clock::now();
    status = StatusAfter(act);
    if (std::chrono::steady_clock::now() - start < std::chrono::seconds(1)) {
      break;
    }
  }
  return status;
}

TEST(InterruptTest, IsNotedOnce) {
  const int without = StatusAfter([] {});
  EXPECT_TRUE(WIFEXITED(without));
  EXPECT_EQ(WEXITSTATUS(without), kGoesOn);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) {
    for (const int times : {1, 2, 5}) {
      const int status = StatusAfterAtOnce([=] {
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

// Slurm sends SIGTERM minutes after its warning.
TEST(InterruptTest, LetsAProgramSaveThatWasWarned) {
  for (const int warning : {SIGHUP, SIGUSR1, SIGUSR2}) {
    const int status = StatusAfter([=] {
      raise(warning);
      usleep(1'050'000);
      raise(warning);
      raise(SIGTERM);
    });
    ASSERT_TRUE(WIFEXITED(status)) << warning << ": " << status;
    EXPECT_EQ(WEXITSTATUS(status), kStopped);
  }
}

TEST(InterruptTest, LeavesIgnoredSignalsIgnored) {
  for (const int ignored : kStopSignals) {
    struct sigaction before = {};
    struct sigaction ignore = {};
    ignore.sa_handler = SIG_IGN;
    sigaction(ignored, &ignore, &before);
    const int status = StatusAfter([=] {
      raise(ignored);
      if (WasInterrupted()) {
        _exit(kGoesOn + 1);
      }
      raise(ignored == SIGHUP ? SIGUSR1 : SIGHUP);
    });
    sigaction(ignored, &before, nullptr);
    ASSERT_TRUE(WIFEXITED(status)) << ignored << ": " << status;
    EXPECT_EQ(WEXITSTATUS(status), kStopped) << ignored;
  }
}

}  // namespace
}  // namespace etc
