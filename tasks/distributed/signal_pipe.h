#ifndef ETC_TASKS_DISTRIBUTED_SIGNAL_PIPE_H_
#define ETC_TASKS_DISTRIBUTED_SIGNAL_PIPE_H_

#include <signal.h>

#include <array>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/interrupt.h"
#include "tasks/distributed/descriptor.h"

namespace etc {

// As long as it lives, SIGCHLD and those of kStopSignals (base/interrupt.h)
// that this process does not ignore do nothing but become readable here, for
// poll(). Not a signalfd: that needs the signals blocked in all threads, also
// in those that a BLAS library starts when it is loaded.
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

}  // namespace etc

#endif  // ETC_TASKS_DISTRIBUTED_SIGNAL_PIPE_H_
