#ifndef ETC_TASKS_DISTRIBUTED_CHILD_PROCESS_H_
#define ETC_TASKS_DISTRIBUTED_CHILD_PROCESS_H_

#include <sys/types.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace etc {

// Owns a file descriptor and closes it. -1: none.
class Descriptor {
 public:
  explicit Descriptor(int value = -1) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept
      : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Descriptor() { Close(); }

  int get() const { return value_; }
  bool is_open() const { return value_ >= 0; }
  void Close() {
    if (value_ >= 0) {
      close(std::exchange(value_, -1));
    }
  }

 private:
  int value_;
};

// The program of a process.
struct ChildProgram {
  std::string path;
  // Arguments from argv[0], its name, on.
  std::vector<std::string> arguments;
  // The whole environment, as "NAME=value".
  std::vector<std::string> environment;
};

// A process that was started. Whoever has it must wait for `pid`.
struct ChildProcess {
  pid_t pid = -1;
  // Ends of pipes to read its standard output and error; reading does not wait.
  Descriptor out;
  Descriptor err;
};

// Starts a process in a process group of its own, so that a terminal's Ctrl-C
// does not reach it, with /dev/null as its input and default actions of SIGCHLD
// and of those of kStopSignals (base/interrupt.h) that this process does not
// ignore. It gets SIGTERM when the thread that started it ends, however. Fails
// if it cannot be started; the message says why.
absl::StatusOr<ChildProcess> StartChild(const ChildProgram& program);

}  // namespace etc

#endif  // ETC_TASKS_DISTRIBUTED_CHILD_PROCESS_H_
