#include "tasks/distributed/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "base/file_operations.h"
#include "base/interrupt.h"
#include "base/status_macros.h"

namespace etc {
namespace {

struct Pipe {
  Descriptor read;
  Descriptor write;
};

// Neither end is inherited by a program.
absl::StatusOr<Pipe> MakePipe() {
  std::array<int, 2> ends = {};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return absl::ErrnoToStatus(errno, "cannot make a pipe for a process");
  }
  return Pipe{.read = Descriptor(ends[0]), .write = Descriptor(ends[1])};
}

// Returns pointers for execve, which must end with a null.
std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (const std::string& word : words) {
    pointers.push_back(const_cast<char*>(word.c_str()));
  }
  pointers.push_back(nullptr);
  return pointers;
}

// Everything that the new process needs, made before it exists: between fork
// and execve only async-signal-safe functions may be called.
struct ChildPlan {
  const char* path = nullptr;
  char* const* arguments = nullptr;
  char* const* environment = nullptr;
  pid_t parent = -1;
  int out = -1;
  int err = -1;
  int error = -1;         // takes the errno of what fails
  sigset_t signals = {};  // those that are blocked
};

// Returns only if something fails, with errno set.
void Execute(const ChildPlan& plan) {
  if (setpgid(0, 0) != 0 || prctl(PR_SET_PDEATHSIG, SIGTERM) != 0) {
    return;
  }
  // The parent may have ended before it was asked about.
  if (getppid() != plan.parent) {
    _exit(1);
  }
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null < 0 || dup2(plan.out, STDOUT_FILENO) < 0 ||
      dup2(plan.err, STDERR_FILENO) < 0 || dup2(null, STDIN_FILENO) < 0) {
    return;
  }
  // The parent's handlers would act for the parent here.
  for (const int number : kStopSignals) {
    if (!IsIgnored(number)) {
      signal(number, SIG_DFL);
    }
  }
  signal(SIGCHLD, SIG_DFL);
  sigprocmask(SIG_SETMASK, &plan.signals, nullptr);
  execve(plan.path, plan.arguments, plan.environment);
}

[[noreturn]] void RunChild(const ChildPlan& plan) {
  Execute(plan);
  const int error = errno;
  static_cast<void>(!write(plan.error, &error, sizeof(error)));
  _exit(127);
}

// Forks while signals are blocked: the child must not take one before it has
// left the parent's handlers.
pid_t Fork(ChildPlan* plan) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &plan->signals);
  const pid_t pid = fork();
  if (pid == 0) {
    RunChild(*plan);
  }
  const int error = errno;
  pthread_sigmask(SIG_SETMASK, &plan->signals, nullptr);
  errno = error;
  return pid;
}

// 0 once the program runs, else why it does not.
int ErrorOfStart(int descriptor) {
  int error = 0;
  ssize_t count = 0;
  do {
    count = read(descriptor, &error, sizeof(error));
  } while (count < 0 && errno == EINTR);
  return count == sizeof(error) ? error : 0;
}

}  // namespace

absl::StatusOr<ChildProcess> StartChild(const ChildProgram& program) {
  ETC_ASSIGN_OR_RETURN(Pipe out, MakePipe());
  ETC_ASSIGN_OR_RETURN(Pipe err, MakePipe());
  ETC_ASSIGN_OR_RETURN(Pipe error, MakePipe());
  // Sets only this end: the process itself should wait when its pipe is full.
  fcntl(out.read.get(), F_SETFL, O_NONBLOCK);
  fcntl(err.read.get(), F_SETFL, O_NONBLOCK);
  const std::vector<char*> arguments = Pointers(program.arguments);
  const std::vector<char*> environment = Pointers(program.environment);
  ChildPlan plan{.path = program.path.c_str(),
                 .arguments = arguments.data(),
                 .environment = environment.data(),
                 .parent = getpid(),
                 .out = out.write.get(),
                 .err = err.write.get(),
                 .error = error.write.get()};
  const pid_t pid = Fork(&plan);
  if (pid < 0) {
    return absl::ErrnoToStatus(errno, "cannot start a process");
  }
  error.write.Close();
  if (const int code = ErrorOfStart(error.read.get()); code != 0) {
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    return ErrnoStatus(code, "start", program.path);
  }
  return ChildProcess{
      .pid = pid, .out = std::move(out.read), .err = std::move(err.read)};
}

}  // namespace etc
