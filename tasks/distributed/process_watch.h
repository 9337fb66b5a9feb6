#ifndef ETC_TASKS_DISTRIBUTED_PROCESS_WATCH_H_
#define ETC_TASKS_DISTRIBUTED_PROCESS_WATCH_H_

#include <signal.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/interrupt.h"
#include "tasks/distributed/child_process.h"

namespace etc {

// While it lives, SIGCHLD and those of kStopSignals (base/interrupt.h) that
// this process does not ignore do nothing but become readable here, for poll().
// Not a signalfd: that needs the signals blocked in all threads, also in those
// that a BLAS library starts when it is loaded.
class SignalPipe {
 public:
  // There may be one at a time in a process; fails if the system has no pipe.
  static absl::StatusOr<std::unique_ptr<SignalPipe>> Open();
  // The signals do what they did before.
  ~SignalPipe();
  SignalPipe(const SignalPipe&) = delete;
  SignalPipe& operator=(const SignalPipe&) = delete;

  // Readable when a signal has come.
  int descriptor() const { return read_.get(); }
  // The signals that came since the last call, in their order. Does not wait.
  std::vector<int> Take();

 private:
  SignalPipe(Descriptor read_end, Descriptor write_end);

  Descriptor read_;
  Descriptor write_;
  // The former actions of kStopSignals and of SIGCHLD, which the destructor
  // restores.
  std::array<struct sigaction, kStopSignals.size() + 1> before_ = {};
};

// Puts a prefix before each line of a text that comes in pieces. A line ends
// with "\n", "\r" (progress that is overwritten) or "\r\n". With an empty
// prefix the text stays as it is, to the byte.
class LinePrefixer {
 public:
  explicit LinePrefixer(std::string prefix) : prefix_(std::move(prefix)) {}

  // Returns the lines that `piece` completes, with their ends, so that lines of
  // several processes can be interleaved. Text behind the last end is kept, up
  // to 1 MiB; a longer line is broken.
  std::string Add(absl::string_view piece);

  // Returns the last line, with a "\n", if its end is missing, else nothing.
  std::string Finish();

 private:
  std::string prefix_;
  std::string line_;
  bool after_return_ = false;  // a "\n" that comes next belongs to the "\r"
};

struct WatchOptions {
  // Seconds that the others may take to end after a failure; then they get
  // SIGTERM, and after the same time again SIGKILL.
  double grace_seconds = 30;
  // Standard output gets that of process 0 as it is, without "[0] ", for other
  // programs to read; that of the others goes to standard error.
  bool plain_output = false;
  // Descriptors for lines of standard output and error. Stay open.
  int out_fd = 1;
  int err_fd = 2;
};

// Processes that end together. Those that still run when it is destroyed are
// killed.
class ProcessWatch {
 public:
  explicit ProcessWatch(const WatchOptions& options);
  ~ProcessWatch();
  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;

  // The process of the next rank, from 0 on.
  void Add(ChildProcess child);

  // Writes the lines of all processes, "[rank] " before each, and passes all
  // but SIGCHLD from `signals` on to them, until all have ended. Processes that
  // one leaves running in its process group are killed. If nobody reads the
  // output any more, processes wait when their pipes are full, and signals are
  // passed on all the same; once one was, unread output is dropped at the end.
  //   StoppedError  processes have ended with kStoppedExitCode, or by a signal
  //                 that was passed on, and all others well
  //                 (base/interrupt.h)
  //   kAborted      a process failed: the first of them
  //   kCancelled    the same after a signal was passed on
  //   others        output cannot be written; the processes were ended, unless
  //                 it is a pipe without reader, whose lines alone are dropped
  absl::Status Run(SignalPipe* signals);

 private:
  using Clock = std::chrono::steady_clock;

  // A descriptor for lines, lines that it has not taken yet, and the error
  // after which it gets no more.
  struct Sink {
    int descriptor;
    std::string unwritten;
    absl::Status status;
  };
  struct Stream {
    Descriptor source;
    Sink* sink;
    LinePrefixer lines;
  };
  struct Process {
    int64_t rank;
    pid_t pid;
    bool is_running;
    std::array<Stream, 2> streams;
  };
  struct Failure {
    std::string message;
    bool was_killed;   // by a signal
    bool has_stopped;  // as StoppedError says
    bool is_expected;  // as a signal that was passed on asks for
  };

  void TakeSignals(SignalPipe* signals);
  void WaitForEvents(int signals);
  // Called when all have ended.
  void WriteRest(SignalPipe* signals);
  bool Read(Stream* stream, size_t most_bytes);
  void ReadRest(Stream* stream);
  void Write(const Stream& stream, const std::string& lines);
  // Writes what the sink takes now.
  void WriteNow(Sink* sink);
  bool HasUnwritten() const;
  void PassOn(int signal);
  void ReapEnded();
  std::optional<Failure> Reap(Process* process);
  void NoteFailures(const std::vector<Failure>& failures);
  void EndAllAfter(double seconds);
  void SendDueSignal();
  void SendToRunning(int signal) const;

  const WatchOptions options_;
  Sink out_;
  Sink err_;
  std::vector<Process> processes_;
  int64_t running_ = 0;
  std::vector<int> passed_on_;
  absl::Status result_;
  bool was_ended_for_output_ = false;
  // The signal that ends all, and when it is due.
  int next_signal_ = 0;  // 0: nothing has failed
  std::optional<Clock::time_point> due_;
};

}  // namespace etc

#endif  // ETC_TASKS_DISTRIBUTED_PROCESS_WATCH_H_
