#include "tasks/distributed/signal_pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <utility>

namespace etc {
namespace {

std::atomic<int> write_descriptor = -1;
static_assert(std::atomic<int>::is_always_lock_free,
              "a signal handler may only touch what needs no lock");

void WriteSignal(int signal) {
  const int error = errno;
  if (signal != SIGCHLD) {
    NoteInterrupt();
  }
  const auto byte = static_cast<unsigned char>(signal);
  // A full pipe is readable, and that is what counts.
  static_cast<void>(!write(write_descriptor.load(), &byte, 1));
  errno = error;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SignalPipe>> SignalPipe::Open() {
  std::array<int, 2> ends = {};
  if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    return absl::ErrnoToStatus(errno, "cannot make a pipe for signals");
  }
  return std::unique_ptr<SignalPipe>(
      new SignalPipe(Descriptor(ends[0]), Descriptor(ends[1])));
}

SignalPipe::SignalPipe(Descriptor read_end, Descriptor write_end)
    : read_(std::move(read_end)), write_(std::move(write_end)) {
  write_descriptor = write_.get();
  struct sigaction action = {};
  action.sa_handler = WriteSignal;
  action.sa_flags = SA_RESTART;
  for (size_t i = 0; i < kStopSignals.size(); ++i) {
    sigaction(kStopSignals[i], nullptr, &before_[i]);
    if (!IsIgnored(kStopSignals[i])) {
      sigaction(kStopSignals[i], &action, nullptr);
    }
  }
  sigaction(SIGCHLD, &action, &before_.back());
}

SignalPipe::~SignalPipe() {
  for (size_t i = 0; i < kStopSignals.size(); ++i) {
    sigaction(kStopSignals[i], &before_[i], nullptr);
  }
  sigaction(SIGCHLD, &before_.back(), nullptr);
  write_descriptor = -1;
}

std::vector<int> SignalPipe::Take() {
  std::vector<int> signals;
  std::array<unsigned char, 64> bytes = {};
  ssize_t count = 0;
  while ((count = read(read_.get(), bytes.data(), bytes.size())) > 0) {
    signals.insert(signals.end(), bytes.begin(), bytes.begin() + count);
  }
  return signals;
}

}  // namespace etc
