#include "tasks/commands/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <iostream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/interrupt.h"
#include "base/machine_description.h"
#include "tasks/train/device.h"
#include "tasks/train/run_context.h"

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

TaskCallbacks CallbacksOf(StreamReporter* reporter) {
  return {
      .message =
          [reporter](const std::string& text) { reporter->Message(text); },
      .warning = [reporter](const std::string& text) { reporter->Warn(text); },
      .stop = StopAtInterrupt()};
}

void PrintWarnings(const std::vector<std::string>& warnings) {
  StreamReporter reporter = ConsoleReporter();
  const RunContext context = {.reporter = &reporter};
  for (const std::string& warning : warnings) {
    context.Warn(warning);
  }
}

std::string FormatCount(int64_t count) {
  const std::string digits = absl::StrCat(count);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) {
      text += ' ';
    }
    text += digits[i];
  }
  return text;
}

std::string FormatBytes(double bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "kB", "MB", "GB", "TB"};
  size_t unit = 0;
  while (bytes >= 1000 && unit + 1 < kUnits.size()) {
    bytes /= 1000;
    ++unit;
  }
  const int decimals = bytes < 10 && unit > 0 ? 1 : 0;
  return absl::StrFormat("%.*f %s", decimals, bytes, kUnits[unit]);
}

std::string FormatSeconds(double seconds) {
  struct Unit {
    double seconds;
    const char* name;
  };
  constexpr std::array<Unit, 4> kUnits = {
      {{86400, "days"}, {3600, "h"}, {60, "min"}, {1, "s"}}};
  // Takes the largest unit that gives at least one and a half.
  for (const Unit& unit : kUnits) {
    const double count = seconds / unit.seconds;
    if (count >= 1.5 || unit.seconds == 1) {
      const int decimals = count < 1 ? 2 : count < 10 ? 1 : 0;
      return absl::StrFormat("%.*f %s", decimals, count, unit.name);
    }
  }
  return "";
}

ProgramVersion VersionOfProgram(const std::string& commit) {
  return {.version = ETC_VERSION, .commit = commit};
}

std::string VersionText(const std::string& commit) {
  std::string text = absl::StrCat("realetc ", ETC_VERSION);
  if (!commit.empty()) {
    absl::StrAppend(&text, " (commit ", commit, ")");
  }
  for (const MachineFact& fact : DescribeMachine()) {
    absl::StrAppend(&text, "\n", fact.name, ": ", fact.value);
    if (fact.name == "devices" && FindCudaDevices().count > 0) {
      // The first one: to ask others would take memory of theirs.
      const torch::Device first(torch::kCUDA, 0);
      absl::StrAppend(&text, "; ", AttentionOn(first, /*head_size=*/0));
    }
  }
  return text;
}

}  // namespace etc
