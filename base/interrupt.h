#ifndef ETC_BASE_INTERRUPT_H_
#define ETC_BASE_INTERRUPT_H_

#include <signal.h>

#include <array>
#include <atomic>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"

namespace etc {

// Signals that ask a program to save and end: those of people (Ctrl-C, kill),
// of a terminal that closes, and the warnings of batch schedulers.
inline constexpr std::array<int, 5> kStopSignals = {SIGINT, SIGTERM, SIGHUP,
                                                    SIGUSR1, SIGUSR2};

// True if this process ignores `signal`, as under `nohup` or after `trap ''`.
// Async-signal-safe.
bool IsIgnored(int signal);

// Becomes true at the first of kStopSignals after this call; those that are
// ignored stay ignored. Two of SIGINT and SIGTERM that are a second apart or
// more end the program at once; timeout(1) and some schedulers send two at a
// time, and mean one. Lives as long as the program.
const std::atomic<bool>* StopAtInterrupt();

// Returns the flag of StopAtInterrupt.
bool WasInterrupted();

// Makes it true, for handlers of others. Async-signal-safe.
void NoteInterrupt();

// Exit code of a run that a signal has stopped and that has saved a checkpoint
// (EX_TEMPFAIL of sysexits.h): to be started again with --resume.
inline constexpr int kStoppedExitCode = 75;

inline constexpr char kStoppedPayload[] = "realetc/stopped-and-saved";

// kCancelled, marked as the end of such a run.
inline absl::Status StoppedError(absl::string_view message) {
  absl::Status status = absl::CancelledError(message);
  status.SetPayload(kStoppedPayload, absl::Cord());
  return status;
}

inline bool IsStopped(const absl::Status& status) {
  return status.GetPayload(kStoppedPayload).has_value();
}

}  // namespace etc

#endif  // ETC_BASE_INTERRUPT_H_
