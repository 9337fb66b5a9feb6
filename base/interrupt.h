#ifndef ETC_BASE_INTERRUPT_H_
#define ETC_BASE_INTERRUPT_H_

#include <signal.h>

#include <array>
#include <atomic>

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

}  // namespace etc

#endif  // ETC_BASE_INTERRUPT_H_
