#include "base/interrupt.h"

#include <signal.h>
#include <time.h>

#include <cstdint>

namespace etc {
namespace {

std::atomic<bool> interrupted = false;
// When it became true, by NowMilliseconds.
std::atomic<int64_t> interrupted_at = 0;
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
  const int64_t now = NowMilliseconds();
  if (!interrupted) {
    interrupted_at = now;
    interrupted = true;
  } else if (now - interrupted_at >= kMeantAsOne) {
    signal(number, SIG_DFL);
    raise(number);  // delivered when the handler ends
  }
}

}  // namespace

const std::atomic<bool>* StopAtInterrupt() {
  struct sigaction action = {};
  action.sa_handler = Interrupt;
  action.sa_flags = SA_RESTART;
  // One handler at a time.
  sigaddset(&action.sa_mask, SIGINT);
  sigaddset(&action.sa_mask, SIGTERM);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return &interrupted;
}

}  // namespace etc
