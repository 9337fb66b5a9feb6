#ifndef ETC_TASKS_COMMANDS_CONSOLE_H_
#define ETC_TASKS_COMMANDS_CONSOLE_H_

#include <string>
#include <vector>

#include "tasks/train/progress.h"

namespace etc {

// A reporter to standard error: one line that is overwritten on a terminal,
// lines now and then elsewhere.
StreamReporter ConsoleReporter();

// To standard error, "realetc: warning: " before each.
void PrintWarnings(const std::vector<std::string>& warnings);

}  // namespace etc

#endif  // ETC_TASKS_COMMANDS_CONSOLE_H_
