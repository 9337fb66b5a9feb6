#ifndef ETC_TESTS_TASKS_DISTRIBUTED_LAUNCHED_SCRIPTS_H_
#define ETC_TESTS_TASKS_DISTRIBUTED_LAUNCHED_SCRIPTS_H_

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/interrupt.h"
#include "tasks/distributed/launcher.h"
#include "tests/support/temporary_directory.h"

// Support for tests of Launch with scripts of /bin/sh as processes.
namespace etc {

// Longer than anything takes on a loaded machine.
inline constexpr std::chrono::seconds kPatience(300);

inline bool WaitFor(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

class LauncherTest : public testing::Test {
 protected:
  LauncherTest() {
    // Tests may themselves be run by a launcher.
    for (const char* name :
         {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR",
          "MASTER_PORT", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
          "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "OMP_NUM_THREADS"}) {
      unsetenv(name);
    }
    // Scripts leave files there.
    setenv("FILES", directory_.path().c_str(), /*overwrite=*/1);
    // Processes whose parent has ended become this one's children, which can be
    // waited for.
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    out_fd_ = Create("stdout");
    err_fd_ = Create("stderr");
  }

  // No test leaves a process. Those that scripts have started end a moment
  // after their script was killed.
  ~LauncherTest() override {
    EXPECT_TRUE(WaitFor([] { return !HasChild(); }));
    close(out_fd_);
    close(err_fd_);
  }

  LaunchOptions Script(int64_t processes, const std::string& script) const {
    return {
        .processes = processes,
        .command = {"-c", script, "script"},
        .program = "/bin/sh",
        .name = "sh",
        .watch = {.grace_seconds = 0.2, .out_fd = out_fd_, .err_fd = err_fd_}};
  }

  // The same in a process of its own, which ends with 0 if Launch succeeds, and
  // else with 1, or kStoppedExitCode, after writing why to the file "status".
  pid_t LaunchApart(const LaunchOptions& options) {
    const pid_t pid = fork();
    if (pid == 0) {
      const absl::Status status = Launch(options);
      std::ofstream(directory_.File("status")) << status.message();
      _exit(status.ok() ? 0 : IsStopped(status) ? kStoppedExitCode : 1);
    }
    return pid;
  }

  // Waits for a child of this process; its status as waitpid has it, or -1.
  static int WaitForEnd(pid_t pid) {
    int status = -1;
    const bool ended =
        WaitFor([&] { return waitpid(pid, &status, WNOHANG) != 0; });
    return ended ? status : -1;
  }

  // Returns true if there is a child of this process that nobody has waited
  // for.
  static bool HasChild() {
    return waitpid(-1, nullptr, WNOHANG) != -1 || errno != ECHILD;
  }

  std::string Contents(const std::string& name) const {
    std::ostringstream contents;
    contents << std::ifstream(directory_.File(name)).rdbuf();
    return contents.str();
  }
  std::string Out() const { return Contents("stdout"); }
  std::string Err() const { return Contents("stderr"); }

  // Lines of standard output, sorted: processes write at any time.
  std::vector<std::string> OutLines() const {
    std::vector<std::string> lines =
        absl::StrSplit(Out(), '\n', absl::SkipEmpty());
    std::sort(lines.begin(), lines.end());
    return lines;
  }

  // Returns the pid that `echo $$ > $FILES/NAME` in a script has left, once it
  // is there.
  pid_t PidIn(const std::string& name) const {
    WaitFor([&] {
      const std::string text = Contents(name);
      return !text.empty() && text.back() == '\n';
    });
    return static_cast<pid_t>(std::atoi(Contents(name).c_str()));
  }

  TemporaryDirectory directory_;

 private:
  int Create(const std::string& name) const {
    return open(directory_.File(name).c_str(),
                O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  }

  int out_fd_ = -1;
  int err_fd_ = -1;
};

}  // namespace etc

#endif  // ETC_TESTS_TASKS_DISTRIBUTED_LAUNCHED_SCRIPTS_H_
