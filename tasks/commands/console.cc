#include "tasks/commands/console.h"

#include <signal.h>
#include <unistd.h>

#include <iostream>

namespace etc {
namespace {

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free,
              "a signal handler may only touch what needs no lock");

}  // namespace

StreamReporter ConsoleReporter() {
  return StreamReporter(&std::cerr, isatty(STDERR_FILENO) != 0
                                        ? StreamReporter::Style::kTerminal
                                        : StreamReporter::Style::kLines);
}

void PrintWarnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    std::cerr << "realetc: warning: " << warning << std::endl;
  }
}

const std::atomic<bool>* StopAtInterrupt() {
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupted = true; };
  // The default is back after the first one.
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return &interrupted;
}

}  // namespace etc
