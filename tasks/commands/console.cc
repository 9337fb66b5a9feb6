#include "tasks/commands/console.h"

#include <unistd.h>

#include <iostream>

namespace etc {

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

}  // namespace etc
