// The lock of a run's directory: one has it, another is told who, and it is
// free again when its process ends, however.

#include "tasks/output/run_lock.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/file_operations.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

TEST(RunLockTest, IsHadByOneWhoIsNamedToOthers) {
  const TemporaryDirectory temporary;
  std::optional<RunLock> held;
  {
    auto lock = RunLock::Take(temporary.path());
    ASSERT_TRUE(lock.ok()) << lock.status();
    held.emplace(*std::move(lock));
  }
  ASSERT_TRUE(held->WriteHolder().ok());
  const absl::Status refused = RunLock::Take(temporary.path()).status();
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr(absl::StrCat(temporary.path(), " is in use by process ",
                                     getpid(), " on ", HostName())));
  EXPECT_THAT(std::string(refused.message()),
              ContainsRegex("since 20..-..-..T..:..:..Z$"));
  held.reset();
  EXPECT_TRUE(RunLock::Take(temporary.path()).ok());
}

TEST(RunLockTest, SaysWhenTheHolderIsNotKnown) {
  const TemporaryDirectory temporary;
  const auto held = RunLock::Take(temporary.path());
  ASSERT_TRUE(held.ok());
  EXPECT_THAT(RunLock::Take(temporary.path()).status().message(),
              HasSubstr("has not yet written into " + temporary.File("lock")));
}

// Another start made the file, was refused and removed it.
TEST(RunLockTest, IsNotHadByWhoOpenedAFileThatIsRemoved) {
  class RemovesTheFirst : public FileOperations {
   public:
    int Open(const std::string& path, int flags, mode_t mode) override {
      const int descriptor = FileOperations::Open(path, flags, mode);
      if (opened_++ == 0) {
        unlink(path.c_str());
      }
      return descriptor;
    }

   private:
    int opened_ = 0;
  };
  const TemporaryDirectory temporary;
  RemovesTheFirst operations;
  const ScopedFileOperations scope(&operations);
  const auto held = RunLock::Take(temporary.path());
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_TRUE(absl::IsUnavailable(RunLock::Take(temporary.path()).status()));
}

TEST(RunLockTest, IsFreeWhenItsProcessWasKilled) {
  const TemporaryDirectory temporary;
  std::array<int, 2> ready = {};
  ASSERT_EQ(pipe(ready.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto lock = RunLock::Take(temporary.path());
    if (!lock.ok() || !lock->WriteHolder().ok() ||
        write(ready[1], "x", 1) != 1) {
      _exit(1);
    }
    pause();
  }
  char ignored = 0;
  ASSERT_EQ(read(ready[0], &ignored, 1), 1);
  EXPECT_THAT(RunLock::Take(temporary.path()).status().message(),
              HasSubstr(absl::StrCat("process ", child)));
  kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(RunLock::Take(temporary.path()).ok());
}

TEST(RunLockTest, LeavesTheFileAsItIsUntilTheHolderIsWritten) {
  TemporaryDirectory temporary;
  temporary.Write("lock", "before");
  const auto lock = RunLock::Take(temporary.path());
  ASSERT_TRUE(lock.ok());
  EXPECT_EQ(*ReadFile(temporary.File("lock")), "before");
  ASSERT_TRUE(lock->WriteHolder().ok());
  EXPECT_THAT(*ReadFile(temporary.File("lock")),
              testing::StartsWith("{\"pid\":"));
}

TEST(RunLockTest, SaysWhatItCannotOpen) {
  EXPECT_THAT(RunLock::Take("/nowhere").status().message(),
              HasSubstr("/nowhere/lock"));
}

}  // namespace
}  // namespace etc
