#ifndef ETC_TASKS_COMMANDS_PROGRAM_H_
#define ETC_TASKS_COMMANDS_PROGRAM_H_

#include <string>

namespace etc {

// Runs the command that main's arguments name and returns the exit code: 0
// success, 1 failure, 2 wrong usage, 75 stopped by a signal and saved. `commit`
// is that of ProgramVersion (tasks/output/program_version.h). Sets signal
// handlers and streams of the process, so a process calls it once.
int RunProgram(int argc, char** argv, const std::string& commit = "");

}  // namespace etc

#endif  // ETC_TASKS_COMMANDS_PROGRAM_H_
