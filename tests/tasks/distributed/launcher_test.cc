// Environment and output of launched processes, and the end of all when one
// ends. Signals are in launcher_signals_test.cc.
#include "tasks/distributed/launcher.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/cpu_limit.h"
#include "tests/tasks/distributed/launched_scripts.h"

namespace etc {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(LauncherTest, TellsEachProcessItsPlace) {
  const absl::Status status = Launch(Script(
      3,
      "echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $MASTER_ADDR\n"
      "echo $MASTER_PORT > $FILES/port$RANK"));
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(OutLines(),
              ElementsAre("[0] 0 3 0 3 127.0.0.1", "[1] 1 3 1 3 127.0.0.1",
                          "[2] 2 3 2 3 127.0.0.1"));
  const int port = PidIn("port0");
  EXPECT_GE(port, 1);
  EXPECT_LE(port, 65535);
  EXPECT_EQ(PidIn("port1"), port);
  EXPECT_EQ(PidIn("port2"), port);
}

TEST_F(LauncherTest, DividesTheCoresUnlessThreadsAreSet) {
  const LaunchOptions options = Script(2, "echo $OMP_NUM_THREADS $MASTER_ADDR");
  ASSERT_TRUE(Launch(options).ok());
  const auto share = std::clamp<int64_t>(CpusOfProcess() / 2, 1, kMostThreads);
  setenv("OMP_NUM_THREADS", "7", /*overwrite=*/1);
  // One of an earlier run counts no more.
  setenv("MASTER_ADDR", "10.0.0.7", /*overwrite=*/1);
  ASSERT_TRUE(Launch(options).ok());
  EXPECT_THAT(OutLines(), testing::UnorderedElementsAre(
                              absl::StrCat("[0] ", share, " 127.0.0.1"),
                              absl::StrCat("[1] ", share, " 127.0.0.1"),
                              "[0] 7 127.0.0.1", "[1] 7 127.0.0.1"));
}

TEST_F(LauncherTest, PassesArgumentsOnUntouched) {
  LaunchOptions options = Script(1, "printf '%s|' \"$0\" \"$@\"");
  for (const char* word : {"a b", "", "[x,y]", "--flag", "*", "a.b=\"1\""}) {
    options.command.emplace_back(word);
  }
  EXPECT_TRUE(Launch(options).ok());
  EXPECT_EQ(Out(), "[0] script|a b||[x,y]|--flag|*|a.b=\"1\"|\n");
}

TEST_F(LauncherTest, KeepsOutputAndErrorsApartAndEndsTheLastLine) {
  EXPECT_TRUE(
      Launch(Script(1, "echo a; echo b >&2; printf c; printf d >&2")).ok());
  EXPECT_EQ(Out(), "[0] a\n[0] c\n");
  EXPECT_EQ(Err(), "[0] b\n[0] d\n");
}

TEST_F(LauncherTest, WritesTheFirstProcessesOutputAsItIsWhereThatIsAskedFor) {
  LaunchOptions options =
      Script(2, "echo out of $RANK; printf rest; echo err of $RANK >&2");
  options.watch.plain_output = true;
  EXPECT_TRUE(Launch(options).ok());
  EXPECT_EQ(Out(), "out of 0\nrest");
  std::vector<std::string> lines =
      absl::StrSplit(Err(), '\n', absl::SkipEmpty());
  EXPECT_THAT(lines,
              testing::UnorderedElementsAre("[0] err of 0", "[1] err of 1",
                                            "[1] out of 1", "[1] rest"));
}

TEST_F(LauncherTest, BreaksNoLineOfThatOutput) {
  LaunchOptions options = Script(
      2, "[ $RANK = 0 ] && head -c 3000000 /dev/zero | tr '\\0' x; exit 0");
  options.watch.plain_output = true;
  EXPECT_TRUE(Launch(options).ok());
  EXPECT_TRUE(Out() == std::string(3'000'000, 'x')) << Out().size() << " bytes";
}

TEST_F(LauncherTest, WritesALineWhenItIsWhole) {
  // Process 1 writes while process 0 is in the middle of a line.
  const absl::Status status = Launch(
      Script(2,
             "if [ $RANK = 0 ]; then\n"
             "  printf 'begin '; echo > $FILES/begun\n"
             "  until [ -e $FILES/between ]; do sleep 0.01; done; echo end\n"
             "else\n"
             "  until [ -e $FILES/begun ]; do sleep 0.01; done\n"
             "  echo between; echo > $FILES/between\n"
             "fi"));
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(OutLines(), ElementsAre("[0] begin end", "[1] between"));
}

TEST_F(LauncherTest, LosesAndMixesNoLineOfMany) {
  constexpr int kLines = 3000;
  const absl::Status status = Launch(Script(
      3, absl::StrCat("i=0; while [ $i -lt ", kLines,
                      " ]; do echo \"$i of $RANK, some 40 bytes of text\"; "
                      "i=$((i+1)); done")));
  EXPECT_TRUE(status.ok()) << status;
  std::map<char, int> next;
  for (const auto line : absl::StrSplit(Out(), '\n', absl::SkipEmpty())) {
    const char rank = line[1];
    ASSERT_EQ(line, absl::StrCat("[", std::string(1, rank), "] ", next[rank]++,
                                 " of ", std::string(1, rank),
                                 ", some 40 bytes of text"));
  }
  EXPECT_EQ(next,
            (std::map<char, int>{{'0', kLines}, {'1', kLines}, {'2', kLines}}));
}

TEST_F(LauncherTest, GivesNoInput) {
  EXPECT_TRUE(Launch(Script(1, "cat; echo end")).ok());
  EXPECT_EQ(Out(), "[0] end\n");
}

TEST_F(LauncherTest, NamesTheFirstProcessThatFailed) {
  // The others fail once it has been waited for.
  const absl::Status status = Launch(
      Script(3,
             "if [ $RANK = 1 ]; then\n"
             "  echo $$ > $FILES/pid; mv $FILES/pid $FILES/failing; exit 3\n"
             "fi\n"
             "until [ -e $FILES/failing ]; do sleep 0.01; done\n"
             "while kill -0 $(cat $FILES/failing) 2> /dev/null; do\n"
             "  sleep 0.01\n"
             "done\n"
             "exit 4"));
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(status.message(), "process 1 of 3 ended with exit code 3");
}

TEST_F(LauncherTest, NamesTheSignalThatKilledAProcess) {
  const absl::Status status =
      Launch(Script(2, "[ $RANK = 0 ] || kill -KILL $$; exec sleep 600"));
  EXPECT_EQ(status.message(),
            "process 1 of 2 was killed by signal 9 (SIGKILL)");
}

TEST_F(LauncherTest, LetsTheOthersEndInTheGraceTime) {
  LaunchOptions options =
      Script(2,
             "if [ $RANK = 1 ]; then echo > $FILES/failing; exit 1; fi\n"
             "until [ -e $FILES/failing ]; do sleep 0.01; done\n"
             "sleep 0.1; echo noticed");
  options.watch.grace_seconds = 600;
  EXPECT_EQ(Launch(options).message(), "process 1 of 2 ended with exit code 1");
  EXPECT_EQ(Out(), "[0] noticed\n");
}

TEST_F(LauncherTest, AsksTheOthersToEndThen) {
  LaunchOptions options =
      Script(2,
             "if [ $RANK = 1 ]; then\n"
             "  until [ -e $FILES/ready ]; do sleep 0.01; done; exit 1\n"
             "fi\n"
             "trap 'echo asked; exit 0' TERM; echo > $FILES/ready\n"
             "while :; do sleep 0.01; done");
  // Time enough for the script between SIGTERM and SIGKILL.
  options.watch.grace_seconds = 10;
  EXPECT_EQ(Launch(options).message(), "process 1 of 2 ended with exit code 1");
  EXPECT_EQ(Out(), "[0] asked\n");
}

TEST_F(LauncherTest, KillsThoseThatIgnoreSigterm) {
  const auto start = std::chrono::steady_clock::now();
  const absl::Status status =
      Launch(Script(2,
                    "if [ $RANK = 1 ]; then\n"
                    "  until [ -e $FILES/ready ]; do sleep 0.01; done; exit 1\n"
                    "fi\n"
                    "trap '' TERM; echo > $FILES/ready\n"
                    "while :; do sleep 0.01; done"));
  EXPECT_EQ(status.message(), "process 1 of 2 ended with exit code 1");
  EXPECT_GE(std::chrono::steady_clock::now() - start,
            std::chrono::milliseconds(400));
}

TEST_F(LauncherTest, WaitsForEachProcess) {
  EXPECT_TRUE(Launch(Script(4, "exit 0")).ok());
  EXPECT_FALSE(HasChild());
  EXPECT_FALSE(Launch(Script(4, "exit $RANK")).ok());
  EXPECT_FALSE(HasChild());
}

TEST_F(LauncherTest, KillsWhatAProcessLeavesBehind) {
  EXPECT_TRUE(
      Launch(Script(1, "sleep 600 & echo $! > $FILES/left; echo end")).ok());
  EXPECT_EQ(Out(), "[0] end\n");
  const int status = WaitForEnd(PidIn("left"));
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
}

TEST_F(LauncherTest, EndsAllWhenOutputCannotBeWritten) {
  LaunchOptions options = Script(2, "echo line; exec sleep 600");
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  options.watch.out_fd = full;
  EXPECT_THAT(std::string(Launch(options).message()),
              AllOf(HasSubstr("cannot write the processes' output"),
                    HasSubstr("No space left")));
  close(full);
}

// `launch ... | head`
TEST_F(LauncherTest, GoesOnWhenNobodyIsLeftToRead) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  close(ends[0]);
  signal(SIGPIPE, SIG_IGN);
  LaunchOptions options =
      Script(1, "echo line; sleep 0.1; echo line; echo > $FILES/done");
  options.watch.out_fd = ends[1];
  EXPECT_EQ(std::string(Launch(options).message()),
            "cannot write the processes' output: Broken pipe");
  EXPECT_EQ(Contents("done"), "\n");
  signal(SIGPIPE, SIG_DFL);
  close(ends[1]);
}

TEST_F(LauncherTest, WritesErrorsWhenNobodyIsLeftToReadTheOutput) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  close(ends[0]);
  signal(SIGPIPE, SIG_IGN);
  LaunchOptions options = Script(1, "echo line; echo why >&2; exit 3");
  options.watch.out_fd = ends[1];
  EXPECT_EQ(Launch(options).message(), "process 0 of 1 ended with exit code 3");
  EXPECT_EQ(Err(), "[0] why\n");
  signal(SIGPIPE, SIG_DFL);
  close(ends[1]);
}

TEST_F(LauncherTest, SaysWhatCannotBeStarted) {
  LaunchOptions options = Script(2, "");
  options.program = "/nowhere/program";
  EXPECT_THAT(std::string(Launch(options).message()),
              HasSubstr("cannot start /nowhere/program: No such file"));
}

TEST_F(LauncherTest, RefusesWrongOptions) {
  const auto message = [&](void (*change)(LaunchOptions*)) {
    LaunchOptions options = Script(2, "echo started");
    change(&options);
    const absl::Status status = Launch(options);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  EXPECT_EQ(message([](LaunchOptions* o) { o->processes = 0; }),
            "the number of processes should be from 1 to 1024, but is 0");
  EXPECT_THAT(message([](LaunchOptions* o) { o->processes = 1025; }),
              HasSubstr("but is 1025"));
  EXPECT_THAT(message([](LaunchOptions* o) { o->watch.grace_seconds = -1; }),
              HasSubstr("the grace time should be"));
  EXPECT_THAT(message([](LaunchOptions* o) {
                o->watch.grace_seconds =
                    std::numeric_limits<double>::quiet_NaN();
              }),
              HasSubstr("but is nan"));
  EXPECT_THAT(message([](LaunchOptions* o) { o->command.clear(); }),
              HasSubstr("needs a command"));
  EXPECT_THAT(message([](LaunchOptions* o) { o->command = {"launch"}; }),
              HasSubstr("is given launch"));
  EXPECT_EQ(Out(), "");
}

TEST_F(LauncherTest, RefusesToBeOneOfSeveralProcesses) {
  setenv("RANK", "1", /*overwrite=*/1);
  absl::Status status = Launch(Script(2, "echo started"));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("RANK is set: it is \"1\""));
  unsetenv("RANK");
  setenv("SLURM_PROCID", "0", /*overwrite=*/1);
  setenv("SLURM_STEP_NUM_TASKS", "1", /*overwrite=*/1);
  EXPECT_TRUE(Launch(Script(1, "")).ok());
  setenv("SLURM_STEP_NUM_TASKS", "3", /*overwrite=*/1);
  setenv("MASTER_ADDR", "n1", /*overwrite=*/1);
  setenv("MASTER_PORT", "4000", /*overwrite=*/1);
  status = Launch(Script(2, "echo started"));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("but Slurm has started 3"));
  EXPECT_EQ(Out(), "");
}

}  // namespace
}  // namespace etc
