#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wordexp.h>

#include <cstdio>
#include <iostream>
#include <vector>

#include "tasks/commands/program.h"
#include "tests/support/run_realetc.h"

namespace etc {
namespace {

// The exit code of a shell that cannot run a command.
constexpr int kNotRun = 127;

bool SendTo(const std::string& path, int descriptor) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  return file >= 0 && dup2(file, descriptor) == descriptor && close(file) == 0;
}

int RunInChild(const std::string& directory, const std::string& arguments,
               const std::string& out, const std::string& err) {
  wordexp_t words;
  if (!SendTo(out, STDOUT_FILENO) || !SendTo(err, STDERR_FILENO) ||
      chdir(directory.c_str()) != 0 ||
      wordexp(("realetc " + arguments).c_str(), &words,
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
