// Signals that a launcher gets: its processes get them too, may take their time
// to stop, and do not outlive it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <string>

#include "absl/strings/str_cat.h"
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
  for (const int signal : {SIGTERM, SIGINT}) {
    const pid_t launcher = LaunchApart(Script(
        2, WithActions(absl::StrCat("trap 'rm $FILES/pid$RANK; exit 0' ",
                                    signal == SIGINT ? "INT" : "TERM"))));
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
  options.grace_seconds = 0.05;
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
  before.sa_handler = SIG_IGN;
  struct sigaction original = {};
  sigaction(SIGINT, &before, &original);
  EXPECT_TRUE(Launch(Script(1, "kill -INT $$; echo not ignored")).code() ==
              absl::StatusCode::kAborted);
  struct sigaction after = {};
  sigaction(SIGINT, &original, &after);
  EXPECT_EQ(after.sa_handler, SIG_IGN);
  EXPECT_EQ(Out(), "");
}

}  // namespace
}  // namespace etc
