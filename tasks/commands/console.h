#ifndef ETC_TASKS_COMMANDS_CONSOLE_H_
#define ETC_TASKS_COMMANDS_CONSOLE_H_

#include <atomic>
#include <string>
#include <vector>

#include "tasks/train/progress.h"

namespace etc {

// A reporter to standard error: one line that is overwritten on a terminal,
// lines now and then elsewhere.
StreamReporter ConsoleReporter();

// To standard error, "realetc: warning: " before each.
void PrintWarnings(const std::vector<std::string>& warnings);

// Becomes true at the first SIGINT (Ctrl-C) or SIGTERM after this call. The
// second one ends the program at once. Lives as long as the program.
const std::atomic<bool>* StopAtInterrupt();

}  // namespace etc

#endif  // ETC_TASKS_COMMANDS_CONSOLE_H_
