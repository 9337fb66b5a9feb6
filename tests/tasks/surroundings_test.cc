// The program among others: signals of people, terminals and schedulers,
// readers of its output that stop, leave or cannot take it, descriptors that
// were closed when it began, terminals of any width, and users who may start
// few threads.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "tests/support/realetc_program.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int kStopped = 75;

class SurroundingsTest : public RealetcTest {
 protected:
  // A run that ends only if it is stopped.
  std::string WriteEndlessConfig() {
    nlohmann::json config = Config();
    config["train"]["steps"] = 100'000'000;
    config["train"]["evaluate_every"] = 0;
    return WriteConfig(config);
  }

  // Begins `realetc` with `words`, after `prepare` in the new process. Standard
  // error goes to a file unless `prepare` sends it elsewhere.
  pid_t Begin(
      std::vector<std::string> words,
      const std::function<void()>& prepare = [] {}) const {
    const std::string err = directory_.File("stderr");
    const pid_t child = fork();
    if (child == 0) {
      alarm(300);  // a program that hangs ends
      const int file = open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
      dup2(file, STDERR_FILENO);
      prepare();
      std::vector<char*> arguments = {const_cast<char*>("realetc")};
      for (std::string& word : words) {
        arguments.push_back(word.data());
      }
      arguments.push_back(nullptr);
      execv(ETC_PROGRAM, arguments.data());
      _exit(127);
    }
    return child;
  }

  // Waits until the run that WriteConfig has made has this many updates. False
  // if it ends before, or a minute has passed.
  bool WaitForUpdates(pid_t child, int64_t updates) const {
    const std::string metrics = directory_.File("run/seed-1/metrics.jsonl");
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (Lines(Contents(metrics)) < updates) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      siginfo_t info = {};
      if (waitid(P_PID, static_cast<id_t>(child), &info,
                 WEXITED | WNOHANG | WNOWAIT) != 0 ||
          info.si_pid == child || std::chrono::steady_clock::now() > end) {
        return false;
      }
    }
    return true;
  }

  // The exit code of a child, or -signal.
  static int End(pid_t child) {
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  void ExpectSaved() {
    EXPECT_TRUE(std::filesystem::exists(
        directory_.File("run/seed-1/checkpoints/last/model.safetensors")));
    std::filesystem::remove_all(directory_.File("run"));
  }

  // The exit code of `command`, as a shell has it.
  static int Shell(const std::string& command) {
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
};

TEST_F(SurroundingsTest, SavesAtEachSignal) {
  const std::string config = WriteEndlessConfig();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) {
    const pid_t child = Begin({"train", config});
    EXPECT_TRUE(WaitForUpdates(child, 1));
    kill(child, signal);
    EXPECT_EQ(End(child), kStopped) << signal;
    EXPECT_THAT(Contents(directory_.File("stderr")),
                AllOf(HasSubstr("stopped after "), HasSubstr("--resume")));
    if (signal == SIGINT) {
      const Result evaluate = Run(absl::StrCat(
          "evaluate ", directory_.File("run/seed-1/checkpoints/last")));
      EXPECT_EQ(evaluate.code, 0) << evaluate.err;
    }
    ExpectSaved();
  }
}

TEST_F(SurroundingsTest, NamesTheUpdatesSoFarAfterAStop) {
  nlohmann::json config = Config();
  config["train"]["steps"] = 100'000'000;
  config["train"]["evaluate_every"] = 1;
  const std::string out = directory_.File("stdout");
  const pid_t child = Begin({"train", WriteConfig(config)}, [&] {
    dup2(open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666), STDOUT_FILENO);
  });
  EXPECT_TRUE(WaitForUpdates(child, 3));  // with an evaluation
  kill(child, SIGTERM);
  EXPECT_EQ(End(child), kStopped);
  EXPECT_THAT(Contents(out), HasSubstr(" of the first "));
  ExpectSaved();
}

// nohup and `trap ''` ignore it so.
TEST_F(SurroundingsTest, LeavesIgnoredSignalsIgnored) {
  const std::string config = WriteEndlessConfig();
  const pid_t child = Begin({"train", config}, [] {
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_IGN);
  });
  EXPECT_TRUE(WaitForUpdates(child, 1));
  kill(child, SIGHUP);
  kill(child, SIGINT);
  const std::string metrics = directory_.File("run/seed-1/metrics.jsonl");
  EXPECT_TRUE(WaitForUpdates(child, Lines(Contents(metrics)) + 2));
  kill(child, SIGTERM);
  EXPECT_EQ(End(child), kStopped);
  ExpectSaved();
}

// A pager that stops in the middle of a run.
TEST_F(SurroundingsTest, SavesWhereNobodyReadsAnyMore) {
  const std::string config = WriteEndlessConfig();
  for (const char* launch : {"", "launch --processes 1"}) {
    std::array<int, 2> ends = {};
    ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    std::vector<std::string> words =
        absl::StrSplit(launch, ' ', absl::SkipEmpty());
    words.insert(words.end(), {"train", config});
    const pid_t child = Begin(words, [&] { dup2(ends[1], STDERR_FILENO); });
    EXPECT_TRUE(WaitForUpdates(child, 1));
    // Fills the pipe, so that the program can write nothing from here on.
    const int flags = fcntl(ends[1], F_GETFL);
    fcntl(ends[1], F_SETFL, flags | O_NONBLOCK);
    for (const size_t size : {4096, 1}) {
      const std::string text(size, 'x');
      while (write(ends[1], text.data(), size) > 0) {
      }
    }
    fcntl(ends[1], F_SETFL, flags);
    kill(child, SIGTERM);
    EXPECT_EQ(End(child), kStopped) << launch;
    ExpectSaved();
    close(ends[0]);
    close(ends[1]);
  }
}

// `realetc train | tee log`, of which tee is ended.
TEST_F(SurroundingsTest, GoesOnWithoutReaders) {
  const std::string config = WriteConfig(Config());
  EXPECT_EQ(
      Shell(absl::StrCat("{ ", ETC_PROGRAM, " train ", config, "; echo $? >",
                         directory_.File("code"), "; } 2>&1 | true")),
      0);
  // Its result could not be printed, but is there.
  EXPECT_EQ(Contents(directory_.File("code")), "141\n");
  EXPECT_TRUE(std::filesystem::exists(directory_.File("run/summary.json")));
}

TEST_F(SurroundingsTest, EndsSilentlyWhereItsReaderHasLeft) {
  const std::string config = WriteConfig(Config());
  ASSERT_EQ(Run("train " + config).code, 0);
  std::array<int, 2> ends = {};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  close(ends[0]);
  for (const std::string& arguments :
       {std::string("--version"), std::string("fields"),
        "inspect --record 0 --config " + config}) {
    const pid_t child = Begin(absl::StrSplit(arguments, ' '),
                              [&] { dup2(ends[1], STDOUT_FILENO); });
    EXPECT_EQ(End(child), 128 + SIGPIPE) << arguments;
    EXPECT_EQ(Contents(directory_.File("stderr")), "") << arguments;
  }
  // Its messages are for another reader.
  const pid_t child = Begin({"predict", directory_.File("run"), "--data",
                             directory_.File("data.json"), "--output", "-"},
                            [&] { dup2(ends[1], STDOUT_FILENO); });
  EXPECT_EQ(End(child), 128 + SIGPIPE);
  EXPECT_THAT(Contents(directory_.File("stderr")),
              testing::Not(HasSubstr("realetc: ")));
  close(ends[1]);
}

TEST_F(SurroundingsTest, SaysThatItsOutputCannotBeWritten) {
  const std::string config = WriteConfig(Config());
  ASSERT_EQ(Run("train " + config).code, 0);
  const std::string run = directory_.File("run");
  const std::string err = directory_.File("stderr");
  const std::string data = directory_.File("data.json");
  const std::string predictions = directory_.File("predictions.json");
  ASSERT_EQ(
      Run("predict " + run + " --data " + data + " --output " + predictions)
          .code,
      0);
  for (const std::string& arguments :
       {std::string("--version"), std::string("--help"), std::string(),
        std::string("score --help"), "evaluate --json " + run,
        "score wikihop " + data + " " + predictions,
        "inspect " + run + "/seed-1/checkpoints/best",
        "inspect --record 0 --config " + config, "estimate " + config,
        "train --resume " + config,
        "launch --processes 1 evaluate --json " + run}) {
    EXPECT_EQ(
        Shell(absl::StrCat(ETC_PROGRAM, " ", arguments, " >/dev/full 2>", err)),
        1)
        << arguments;
    EXPECT_THAT(Contents(err), AllOf(HasSubstr("realetc: cannot write "),
                                     HasSubstr("No space left on device\n")))
        << arguments;
  }
}

TEST_F(SurroundingsTest, WorksWithClosedDescriptors) {
  const std::string config = WriteConfig(Config());
  int runs = 0;
  for (const char* closed : {"<&- >&- 2>&-", ">&-", "<&- 2>&-", "<&-"}) {
    for (const char* launch : {"", "launch --processes 2 "}) {
      const std::string name = absl::StrCat("run-", ++runs);
      EXPECT_EQ(Shell(absl::StrCat(
                    ETC_PROGRAM, " ", launch, "train ", config,
                    " --set train.micro_batch_size=1 --output ",
                    directory_.File(name), " ", closed,
                    absl::StrContains(closed, "2>") ? "" : " 2>/dev/null")),
                0)
          << launch << closed;
      EXPECT_TRUE(
          std::filesystem::exists(directory_.File(name + "/summary.json")));
    }
  }
}

// Everything that 150 updates write to a terminal of so many columns.
std::string OnATerminal(uint16_t columns, const std::string& config) {
  const winsize size = {.ws_row = 24, .ws_col = columns};
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    execl(ETC_PROGRAM, "realetc", "train", config.c_str(), nullptr);
    _exit(127);
  }
  std::string text;
  std::array<char, 4096> bytes;
  for (ssize_t count = 0;
       (count = read(terminal, bytes.data(), bytes.size())) > 0;) {
    text.append(bytes.data(), static_cast<size_t>(count));
  }
  close(terminal);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << text;
  return text;
}

TEST_F(SurroundingsTest, KeepsProgressInOneLineOfATerminal) {
  nlohmann::json config = Config();
  config["train"]["steps"] = 150;
  config["train"]["evaluate_every"] = 0;
  for (const uint16_t columns : {80, 40}) {
    config["output"] = directory_.File(absl::StrCat("run-", columns));
    const std::string text = OnATerminal(columns, WriteConfig(config));
    size_t shown = 0;
    // A terminal ends its lines with "\r\n".
    for (const auto line : absl::StrSplit(text, absl::ByAnyChar("\r\n"))) {
      if (absl::StartsWith(line, "step ") ||
          absl::StartsWith(line, "evaluating: ")) {
        EXPECT_LT(line.size(), columns) << line;
        ++shown;
      }
    }
    EXPECT_GE(shown, 1u) << text;
    EXPECT_THAT(text, HasSubstr("step 150/150"));
    // One line is left of all the updates.
    const size_t begin = text.find("\rstep ");
    const size_t end = text.find("step 150/150");
    ASSERT_NE(begin, std::string::npos);
    EXPECT_EQ(text.substr(begin, end - begin).find('\n'), std::string::npos);
  }
}

TEST_F(SurroundingsTest, SaysThatThreadsCannotBeStarted) {
  // The user has no other processes: the limit counts all threads of a user,
  // and does not apply to root.
  constexpr uid_t kUser = 54322;
  nlohmann::json config = Config();
  config["train"]["threads"] = 16;
  const std::string path = WriteConfig(config);
  std::filesystem::permissions(directory_.path(), std::filesystem::perms::all);
  const pid_t child = Begin({"train", path}, [] {
    setenv("OPENBLAS_NUM_THREADS", "1", /*overwrite=*/1);
    const struct rlimit limit = {6, 6};
    if ((geteuid() == 0 && setresuid(kUser, kUser, kUser) != 0) ||
        setrlimit(RLIMIT_NPROC, &limit) != 0 ||
        access(ETC_PROGRAM, X_OK) != 0) {
      _exit(126);
    }
  });
  const int code = End(child);
  if (code == 126) {
    GTEST_SKIP() << "no other user can be one that runs " << ETC_PROGRAM;
  }
  EXPECT_EQ(code, 1);
  EXPECT_THAT(Contents(directory_.File("stderr")),
              testing::ContainsRegex(
                  "realetc: train.threads is 16, for which only [0-9]+ of 30 "
                  "threads could be started: Resource temporarily "
                  "unavailable .see ulimit -u, and pids.max of the control "
                  "group.\n$"));
}

}  // namespace
}  // namespace etc
