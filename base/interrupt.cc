#include "base/interrupt.h"

#include <time.h>

#include <cstdint>

namespace etc {
namespace {

std::atomic<bool> interrupted = false;
// When SIGINT or SIGTERM first came, by NowMilliseconds; 0: not yet.
std::atomic<int64_t> asked_at = 0;
static_assert(std::atomic<bool>::is_always_lock_free &&
                  std::atomic<int64_t>::is_always_lock_free,
              "a signal handler may only touch what needs no lock");

int64_t NowMilliseconds() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

void Interrupt(int number) {
  constexpr int64_t kMeantAsOne = 1000;  // milliseconds
  interrupted = true;
  // A scheduler warns by SIGUSR1 minutes before its SIGTERM, which must not
  // end a program that is saving.
  if (number != SIGINT && number != SIGTERM) {
    return;
  }
  const int64_t now = NowMilliseconds();
  if (asked_at == 0) {
    asked_at = now;
  } else if (now - asked_at >= kMeantAsOne) {
    signal(number, SIG_DFL);
    raise(number);  // delivered when the handler ends
  }
}

}  // namespace

bool IsIgnored(int signal) {
  struct sigaction action = {};
  return sigaction(signal, nullptr, &action) == 0 &&
         (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_IGN;
}

const std::atomic<bool>* StopAtInterrupt() {
  struct sigaction action = {};
  action.sa_handler = Interrupt;
  action.sa_flags = SA_RESTART;
  // One handler at a time.
  for (const int number : kStopSignals) {
    sigaddset(&action.sa_mask, number);
  }
  for (const int number : kStopSignals) {
    if (!IsIgnored(number)) {
      sigaction(number, &action, nullptr);
    }
  }
  return &interrupted;
}

bool WasInterrupted() { return interrupted; }

void NoteInterrupt() { interrupted = true; }

}  // namespace etc
