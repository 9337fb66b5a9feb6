#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wordexp.h>

#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "tasks/commands/program.h"
#include "tests/support/run_realetc.h"

namespace etc {
namespace {

// The exit code of a shell that cannot run a command.
constexpr int kNotRun = 127;

bool Open(const std::string& path, int flags, int descriptor) {
  const int file = open(path.c_str(), flags, 0666);
  return file >= 0 && dup2(file, descriptor) == descriptor && close(file) == 0;
}

int RunInChild(const std::string& directory, const std::string& arguments,
               const std::string& out, const std::string& err) {
  constexpr int kNew = O_WRONLY | O_CREAT | O_TRUNC;
  const std::vector<std::string> parts = absl::StrSplit(arguments, " < ");
  wordexp_t words;
  if (parts.size() > 2 || !Open(out, kNew, STDOUT_FILENO) ||
      !Open(err, kNew, STDERR_FILENO) || chdir(directory.c_str()) != 0 ||
      (parts.size() == 2 && !Open(parts[1], O_RDONLY, STDIN_FILENO)) ||
      wordexp(("realetc " + parts[0]).c_str(), &words,
              WRDE_NOCMD | WRDE_UNDEF) != 0) {
    return kNotRun;
  }
  return RunProgram(static_cast<int>(words.we_wordc), words.we_wordv);
}

}  // namespace

int RunRealetc(const std::string& directory, const std::string& arguments,
               const std::string& out, const std::string& err) {
  std::cout.flush();
  std::cerr.flush();
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const int code = RunInChild(directory, arguments, out, err);
    std::cout.flush();
    std::fflush(nullptr);
    // Without the end of the test program, which is the parent's.
    _exit(code);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) {
    return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace etc
