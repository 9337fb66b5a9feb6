// Two starts at once in one directory, eight times: one runs, and comes to the
// bits of a run that was alone; the other is refused and told who runs. Each is
// a forked child. The one that runs is held in its first update until the other
// one has ended, so that the outcome does not hang on the speed of either.

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/directory.h"
#include "base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/train/toy_run.h"
#include "tests/tasks/train/toy_task.h"

namespace etc {
namespace {

using ::testing::HasSubstr;

// Waits in the first update until the other end of the pipe is closed.
class HeldReporter : public FakeReporter {
 public:
  explicit HeldReporter(int descriptor) : descriptor_(descriptor) {}
  void Update(const Progress& progress) override {
    char ignored = 0;
    while (read(descriptor_, &ignored, 1) > 0) {
    }
    FakeReporter::Update(progress);
  }

 private:
  const int descriptor_;
};

class ConcurrentRunsTest : public testing::Test {
 protected:
  ConcurrentRunsTest() {
    json_ = ToyConfigJson(temporary_.Write("train.jsonl", ToyRecords(37, 1)),
                          temporary_.Write("dev.jsonl", ToyRecords(11, 2)), "");
  }

  // A run in a child, which exits with 0 and leaves its error in a file.
  pid_t Start(const std::string& output, const std::array<int, 2>& gate,
              bool resume) {
    json_["output"] = output;
    const pid_t child = fork();
    if (child == 0) {
      close(gate[1]);
      HeldReporter reporter(gate[0]);
      const auto result = RunToy(json_, &reporter, resume);
      WriteFileAtomically(ErrorFile(getpid()), result.status().message())
          .IgnoreError();
      _exit(result.ok() ? 0 : 1);
    }
    return child;
  }

  std::string ErrorFile(pid_t child) const {
    return temporary_.File(absl::StrCat("error-", child));
  }

  TemporaryDirectory temporary_;
  nlohmann::json json_;
};

// The first of two children to end; 0 if neither does within ten minutes.
pid_t WaitForFirst(pid_t one, pid_t other, int* status) {
  for (int i = 0; i < 60'000; ++i) {
    for (const pid_t child : {one, other}) {
      if (waitpid(child, status, WNOHANG) == child) {
        return child;
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return 0;
}

TEST_F(ConcurrentRunsTest, OneOfTwoStartsWinsAndTheOtherIsToldWhoRuns) {
  std::array<int, 2> open_gate = {};
  ASSERT_EQ(pipe(open_gate.data()), 0);
  const pid_t alone = Start(temporary_.File("alone"), open_gate, false);
  close(open_gate[1]);
  int status = 0;
  ASSERT_EQ(waitpid(alone, &status, 0), alone);
  ASSERT_EQ(status, 0) << *ReadFile(ErrorFile(alone));
  close(open_gate[0]);

  for (int round = 0; round < 8; ++round) {
    SCOPED_TRACE(round);
    const std::string output = temporary_.File(absl::StrCat("run-", round));
    std::array<int, 2> gate = {};
    ASSERT_EQ(pipe(gate.data()), 0);
    // Both ways of starting: each would once have deleted what the other made.
    const pid_t first = Start(output, gate, /*resume=*/round % 2 == 1);
    const pid_t second = Start(output, gate, /*resume=*/round % 4 >= 2);
    const pid_t loser = WaitForFirst(first, second, &status);
    close(gate[1]);
    close(gate[0]);
    ASSERT_NE(loser, 0) << "both run";
    ASSERT_TRUE(WIFEXITED(status));
    const pid_t winner = loser == first ? second : first;
    EXPECT_EQ(WEXITSTATUS(status), 1);
    EXPECT_THAT(*ReadFile(ErrorFile(loser)),
                HasSubstr(absl::StrCat(output, "/seed-1 is in use by process ",
                                       winner, " on ", HostName(), " since ")));
    ASSERT_EQ(waitpid(winner, &status, 0), winner);
    ASSERT_EQ(status, 0) << *ReadFile(ErrorFile(winner));
    ExpectSameRun(output + "/seed-1", temporary_.File("alone/seed-1"));
  }
}

}  // namespace
}  // namespace etc
