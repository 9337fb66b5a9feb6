// Signals that a launcher gets: its processes get them too, may take their time
// to stop, and do not outlive it.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <array>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/interrupt.h"
#include "tests/tasks/distributed/launched_scripts.h"

namespace etc {
namespace {

using LauncherSignalsTest = LauncherTest;

// A script that sets its actions at signals, writes its number to the file
// pidRANK and waits.
std::string WithActions(const std::string& actions) {
  return absl::StrCat(actions,
                      "\necho $$ > $FILES/pid$RANK\n"
                      "while :; do sleep 0.01; done");
}

TEST_F(LauncherSignalsTest, ArePassedOnToAllProcesses) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) {
    const pid_t launcher = LaunchApart(
        Script(2, WithActions(absl::StrCat("trap 'rm $FILES/pid$RANK; exit 0' ",
                                           sigabbrev_np(signal)))));
    for (const char* name : {"pid0", "pid1"}) {
      // In a group of its own, or a terminal's Ctrl-C would reach it twice.
      const pid_t pid = PidIn(name);
      EXPECT_EQ(getpgid(pid), pid);
    }
    kill(launcher, signal);
    EXPECT_EQ(WaitForEnd(launcher), 0) << Contents("status");
    EXPECT_EQ(Contents("pid0") + Contents("pid1"), "");
  }
}

TEST_F(LauncherSignalsTest, ArePassedOnEachTime) {
  const pid_t launcher = LaunchApart(
      Script(1, WithActions("n=0; trap 'n=$((n + 1)); echo $n; [ $n = 3 ] && "
                            "exit 0' INT")));
  PidIn("pid0");
  std::string expected;
  for (const char* line : {"[0] 1\n", "[0] 2\n", "[0] 3\n"}) {
    kill(launcher, SIGINT);
    expected += line;
    EXPECT_TRUE(WaitFor([&] { return Out() == expected; })) << Out();
  }
  EXPECT_EQ(WaitForEnd(launcher), 0) << Contents("status");
}

TEST_F(LauncherSignalsTest, LeaveAllTheirTimeToSave) {
  // Process 1 stops at once; process 0 takes longer than until SIGKILL.
  LaunchOptions options = Script(
      2, WithActions("stop() {\n"
                     "  if [ $RANK = 0 ]; then\n"
                     "    while kill -0 $(cat $FILES/pid1) 2> /dev/null; do\n"
                     "      sleep 0.01\n"
                     "    done\n"
                     "    sleep 0.3; echo saved\n"
                     "  fi\n"
                     "  exit 1\n"
                     "}\n"
                     "trap stop TERM"));
  options.watch.grace_seconds = 0.05;
  const pid_t launcher = LaunchApart(options);
  PidIn("pid0");
  PidIn("pid1");
  kill(launcher, SIGTERM);
  EXPECT_EQ(WEXITSTATUS(WaitForEnd(launcher)), 1);
  EXPECT_EQ(Out(), "[0] saved\n");
  EXPECT_EQ(Contents("status"),
            "process 1 of 2 ended with exit code 1 after SIGTERM was passed on "
            "to all processes");
}

TEST_F(LauncherSignalsTest, DoNotKeepThoseThatLoseAnother) {
  // After the signal process 1 is killed, and process 0 never stops.
  const pid_t launcher =
      LaunchApart(Script(2, WithActions("trap 'echo got' INT")));
  PidIn("pid0");
  const pid_t killed = PidIn("pid1");
  kill(launcher, SIGINT);
  EXPECT_TRUE(WaitFor([&] { return OutLines().size() == 2; }));
  kill(killed, SIGKILL);
  EXPECT_EQ(WEXITSTATUS(WaitForEnd(launcher)), 1);
  EXPECT_EQ(Contents("status"),
            "process 1 of 2 was killed by signal 9 (SIGKILL) after SIGINT was "
            "passed on to all processes");
}

TEST_F(LauncherSignalsTest, KillALauncherWithItsProcesses) {
  const pid_t launcher = LaunchApart(Script(2, WithActions("")));
  const pid_t first = PidIn("pid0");
  const pid_t second = PidIn("pid1");
  kill(launcher, SIGKILL);
  EXPECT_TRUE(WIFSIGNALED(WaitForEnd(launcher)));
  for (const pid_t pid : {first, second}) {
    const int status = WaitForEnd(pid);
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), SIGTERM);
  }
}

TEST_F(LauncherSignalsTest, DoAfterwardsWhatTheyDidBefore) {
  struct sigaction before = {};
  before.sa_handler = [](int) {};
  struct sigaction original = {};
  sigaction(SIGINT, &before, &original);
  EXPECT_TRUE(Launch(Script(1, "kill -INT $$; echo goes on")).code() ==
              absl::StatusCode::kAborted);
  struct sigaction after = {};
  sigaction(SIGINT, &original, &after);
  EXPECT_EQ(after.sa_handler, before.sa_handler);
  EXPECT_EQ(Out(), "");
}

// nohup ignores it so.
TEST_F(LauncherSignalsTest, StayIgnoredInAllProcesses) {
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;
  struct sigaction original = {};
  sigaction(SIGHUP, &ignore, &original);
  const pid_t launcher =
      LaunchApart(Script(1, WithActions("kill -HUP $$; trap 'exit 75' TERM")));
  sigaction(SIGHUP, &original, nullptr);
  PidIn("pid0");
  kill(launcher, SIGHUP);
  kill(launcher, SIGTERM);
  EXPECT_EQ(WEXITSTATUS(WaitForEnd(launcher)), kStoppedExitCode)
      << Contents("status");
}

TEST_F(LauncherSignalsTest, EndInTheExitCodeOfThoseThatHaveSaved) {
  const pid_t launcher =
      LaunchApart(Script(2, WithActions("trap 'exit 75' USR1")));
  PidIn("pid0");
  PidIn("pid1");
  kill(launcher, SIGUSR1);
  EXPECT_EQ(WEXITSTATUS(WaitForEnd(launcher)), kStoppedExitCode);
  EXPECT_THAT(Contents("status"),
              testing::MatchesRegex("process [01] of 2 has stopped and saved "
                                    ".exit code 75. after SIGUSR1 was passed "
                                    "on to all processes"));
  // Not if another one has failed, however late.
  unlink(directory_.File("pid0").c_str());
  unlink(directory_.File("pid1").c_str());
  const pid_t failing = LaunchApart(Script(
      2, WithActions("trap 'rm $FILES/pid$RANK; [ $RANK = 0 ] && exit 75;\n"
                     "while [ -e $FILES/pid0 ]; do sleep 0.01; done;\n"
                     "sleep 0.1; exit 3' TERM")));
  PidIn("pid0");
  PidIn("pid1");
  kill(failing, SIGTERM);
  EXPECT_EQ(WEXITSTATUS(WaitForEnd(failing)), 1);
  EXPECT_THAT(Contents("status"),
              testing::StartsWith("process 1 of 2 ended with exit code 3"));
}

// A process that is still starting has no handlers.
TEST_F(LauncherSignalsTest, EndInThatExitCodeWhereNothingWasBegun) {
  const auto launch = [&](const std::string& actions) {
    unlink(directory_.File("pid0").c_str());
    unlink(directory_.File("pid1").c_str());
    const pid_t launcher = LaunchApart(Script(2, WithActions(actions)));
    PidIn("pid0");
    PidIn("pid1");
    kill(launcher, SIGTERM);
    return WEXITSTATUS(WaitForEnd(launcher));
  };
  EXPECT_EQ(launch(""), kStoppedExitCode);
  EXPECT_THAT(Contents("status"),
              testing::MatchesRegex("process [01] of 2 was killed by signal 15 "
                                    ".SIGTERM. after SIGTERM was passed on to "
                                    "all processes"));
  EXPECT_EQ(launch("[ $RANK = 0 ] && trap 'exit 75' TERM"), kStoppedExitCode);
  EXPECT_EQ(launch("[ $RANK = 0 ] && trap 'exit 3' TERM"), 1);
  EXPECT_THAT(Contents("status"),
              testing::StartsWith("process 0 of 2 ended with exit code 3"));
}

// A pager at its first page, or a terminal after Ctrl-S.
TEST_F(LauncherSignalsTest, ArePassedOnWhenNobodyReadsTheOutput) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  LaunchOptions options = Script(
      2, WithActions("yes 'some words for nobody' & trap 'exit 75' TERM"));
  options.watch.out_fd = ends[1];
  const pid_t launcher = LaunchApart(options);
  PidIn("pid0");
  PidIn("pid1");
  EXPECT_TRUE(WaitFor([&] {
    pollfd polled = {.fd = ends[1], .events = POLLOUT, .revents = 0};
    return poll(&polled, 1, /*timeout=*/0) == 0;
  }));
  kill(launcher, SIGTERM);
  EXPECT_EQ(WEXITSTATUS(WaitForEnd(launcher)), kStoppedExitCode)
      << Contents("status");
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace etc
