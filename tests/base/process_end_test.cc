// The end of a process: what was printed arrives, and nothing of std::atexit
// runs (but under a sanitizer, which reports there).

#include "base/process_end.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "tests/support/sanitizers.h"

namespace etc {
namespace {

void SayThatTheEndRuns() { std::cout << " end" << std::flush; }

TEST(ProcessEndTest, WritesWhatIsBufferedAndRunsNothing) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(pipe(ends.data()), 0);
  std::cout.flush();
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    std::atexit(SayThatTheEndRuns);
    std::cout << "stream";
    std::fputs(" file", stdout);
    EndProcess(75);
  }
  close(ends[1]);
  std::string text;
  std::array<char, 64> bytes = {};
  ssize_t count = 0;
  while ((count = read(ends[0], bytes.data(), bytes.size())) > 0) {
    text.append(bytes.data(), count);
  }
  close(ends[0]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 75);
  EXPECT_EQ(text, kSanitized ? "stream file end" : "stream file");
}

}  // namespace
}  // namespace etc
