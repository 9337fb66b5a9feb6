#ifndef ETC_TASKS_COMMANDS_CONSOLE_H_
#define ETC_TASKS_COMMANDS_CONSOLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tasks/output/program_version.h"
#include "tasks/run_task.h"
#include "tasks/train/progress.h"

namespace etc {

// Stands for standard input or standard output in the place of a file.
inline constexpr char kStandardStream[] = "-";

// A reporter to standard error: one line that is overwritten on a terminal,
// lines now and then elsewhere.
StreamReporter ConsoleReporter();

// Hands messages and warnings to `reporter`, which must outlive the result; the
// stop is that of StopAtInterrupt.
TaskCallbacks CallbacksOf(StreamReporter* reporter);

// Prints to standard error, "realetc: warning: " before each; leaves out empty
// ones.
void PrintWarnings(const std::vector<std::string>& warnings);

// "165 825 024"
std::string FormatCount(int64_t count);

// "1.5 GB", in powers of 1000.
std::string FormatBytes(double bytes);

// "0.25 s", "1.5 min", "12 h" or "3.5 days".
std::string FormatSeconds(double seconds);

// The version of this program; `commit` as of ProgramVersion.
ProgramVersion VersionOfProgram(const std::string& commit);

// Version text for a report of a problem: this program's version and commit,
// and a line for each fact of DescribeMachine (base/machine_description.h).
std::string VersionText(const std::string& commit);

}  // namespace etc

#endif  // ETC_TASKS_COMMANDS_CONSOLE_H_
