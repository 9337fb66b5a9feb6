#include "tasks/commands/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "absl/strings/numbers.h"

namespace etc {
namespace {

// Returns the width, in columns, of the terminal on standard error. If that is
// unknown: COLUMNS of the environment, else 80.
size_t TerminalColumns() {
  winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    return size.ws_col;
  }
  constexpr size_t kUsual = 80;
  size_t columns = 0;
  const char* const said = std::getenv("COLUMNS");
  return said != nullptr && absl::SimpleAtoi(said, &columns) && columns > 0
             ? columns
             : kUsual;
}

}  // namespace

StreamReporter ConsoleReporter() {
  return StreamReporter(&std::cerr,
                        isatty(STDERR_FILENO) != 0
                            ? StreamReporter::Style::kTerminal
                            : StreamReporter::Style::kLines,
                        SteadySeconds, TerminalColumns);
}

void PrintWarnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    std::cerr << "realetc: warning: " << warning << std::endl;
  }
}

}  // namespace etc
