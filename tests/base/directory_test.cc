// Changes of directories: the calls and their order, so that a machine that
// stops leaves one of two states; the abandoned files that are removed and
// those that are not; whether entries can be made; and errors that name the
// path.

#include "base/directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/file.h"
#include "base/temporary_file.h"
#include "tests/support/recorded_operations.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class DirectoryTest : public testing::Test {
 protected:
  TemporaryDirectory directory_;
  RecordedOperations operations_{directory_.path()};
  ScopedFileOperations scope_{&operations_};
};

TEST_F(DirectoryTest, PutsANewFileAndItsNameOnDiskInThisOrder) {
  ASSERT_TRUE(WriteFileAtomically(directory_.File("f"), "text").ok());
  EXPECT_THAT(operations_.calls, ElementsAre("write f.tmp", "sync f.tmp",
                                             "rename to f", "sync ."));
}

TEST_F(DirectoryTest, PutsFilesOnDiskBeforeTheFirstIsMovedWhereThatIsAsked) {
  TemporaryFile one(directory_.File("one"));
  TemporaryFile two(directory_.File("two"));
  ASSERT_TRUE(one.Create().ok());
  ASSERT_TRUE(two.Create().ok());
  operations_.failing_call = "sync two";
  ASSERT_TRUE(one.Sync().ok());
  EXPECT_THAT(two.Sync().message(),
              HasSubstr("cannot sync " + directory_.File("two")));
  operations_.failing_call = "";
  ASSERT_TRUE(two.Sync().ok());
  EXPECT_THAT(operations_.calls,
              ElementsAre("sync one.tmp", "sync two.tmp", "sync two.tmp"));
  ASSERT_TRUE(two.MoveToTarget().ok());
  EXPECT_TRUE(fs::exists(directory_.File("two")));
}

TEST_F(DirectoryTest, PutsEachNewDirectoryOnDisk) {
  ASSERT_TRUE(CreateDirectories(directory_.File("a/b")).ok());
  EXPECT_THAT(operations_.calls,
              ElementsAre("mkdir a", "sync .", "mkdir a/b", "sync a"));
  operations_.calls.clear();
  ASSERT_TRUE(CreateDirectories(directory_.File("a/b")).ok());
  EXPECT_THAT(operations_.calls, ElementsAre());
}

TEST_F(DirectoryTest, ReplacesALinkInOneStepAndPutsItOnDisk) {
  for (const char* target : {"one", "two"}) {
    operations_.calls.clear();
    ASSERT_TRUE(
        ReplaceLink(directory_.File("link"), target, directory_.File("new"))
            .ok());
    EXPECT_EQ(fs::read_symlink(directory_.File("link")), target);
    EXPECT_THAT(operations_.calls, ElementsAre("unlink new", "symlink new",
                                               "rename to link", "sync ."));
  }
}

TEST_F(DirectoryTest, ExchangesTwoDirectoriesInOneStepAndPutsThatOnDisk) {
  fs::create_directory(directory_.File("old"));
  fs::create_directory(directory_.File("new"));
  directory_.Write("new/file", "text");
  const auto exchange = [this] {
    operations_.calls.clear();
    return ExchangeEntries(directory_.File("old"), directory_.File("new"),
                           directory_.File("aside"));
  };
  ASSERT_TRUE(exchange().ok());
  EXPECT_THAT(operations_.calls, ElementsAre("exchange old", "sync ."));
  EXPECT_TRUE(fs::exists(directory_.File("old/file")));
  EXPECT_FALSE(fs::exists(directory_.File("new/file")));
  // Where the file system cannot.
  operations_.failing_call = "exchange old";
  operations_.failing_error = EINVAL;
  ASSERT_TRUE(exchange().ok());
  EXPECT_FALSE(fs::exists(directory_.File("old/file")));
  EXPECT_TRUE(fs::exists(directory_.File("new/file")));
  EXPECT_FALSE(fs::exists(directory_.File("aside")));
  operations_.failing_error = EIO;
  EXPECT_THAT(exchange().message(), HasSubstr("Input/output error"));
  EXPECT_THAT(operations_.calls, ElementsAre("exchange old"));
}

// A file system without renameat2's exchange.
class NoExchange : public FileOperations {
 public:
  int Exchange(const std::string& /*path*/,
               const std::string& /*other*/) override {
    errno = EINVAL;
    return -1;
  }
};

// The first rename to "old" fails, and the one that takes it back does not.
TEST_F(DirectoryTest, TakesBackAnExchangeThatFails) {
  class FailingRename : public NoExchange {
   public:
    int Rename(const std::string& from, const std::string& to) override {
      if (++renames == 2) {
        errno = EIO;
        return -1;
      }
      return FileOperations::Rename(from, to);
    }
    int renames = 0;
  };
  FailingRename operations;
  const ScopedFileOperations scope(&operations);
  directory_.Write("old", "old");
  directory_.Write("new", "new");
  EXPECT_FALSE(ExchangeEntries(directory_.File("old"), directory_.File("new"),
                               directory_.File("aside"))
                   .ok());
  EXPECT_EQ(*ReadFile(directory_.File("old")), "old");
  EXPECT_EQ(*ReadFile(directory_.File("new")), "new");
}

// The first rename, to "aside", works, and its sync fails.
TEST_F(DirectoryTest, TakesBackARenameThatIsNotSynced) {
  class FailingSync : public NoExchange {
   public:
    int Sync(int descriptor) override {
      if (++syncs == 1) {
        errno = EIO;
        return -1;
      }
      return FileOperations::Sync(descriptor);
    }
    int syncs = 0;
  };
  FailingSync operations;
  const ScopedFileOperations scope(&operations);
  directory_.Write("old", "old");
  directory_.Write("new", "new");
  EXPECT_THAT(ExchangeEntries(directory_.File("old"), directory_.File("new"),
                              directory_.File("aside"))
                  .message(),
              HasSubstr("Input/output error"));
  ASSERT_TRUE(fs::exists(directory_.File("old")));
  EXPECT_EQ(*ReadFile(directory_.File("old")), "old");
  EXPECT_EQ(*ReadFile(directory_.File("new")), "new");
  EXPECT_FALSE(fs::exists(directory_.File("aside")));
}

TEST_F(DirectoryTest, RemovesATreeButNotWhereItsLinksLead) {
  directory_.Write("kept", "text");
  fs::create_directories(directory_.File("tree/inner"));
  directory_.Write("tree/inner/file", "text");
  fs::create_symlink(directory_.path(), directory_.File("tree/link"));
  ASSERT_TRUE(RemoveTree(directory_.File("tree")).ok());
  EXPECT_FALSE(fs::exists(directory_.File("tree")));
  EXPECT_EQ(*ReadFile(directory_.File("kept")), "text");
  EXPECT_TRUE(RemoveTree(directory_.File("tree")).ok()) << "is gone already";
}

TEST_F(DirectoryTest, SaysWhatFailedAndLeavesTheOldFile) {
  const std::string path = directory_.Write("f", "old");
  operations_.failing_error = EFBIG;
  for (const char* call : {"write f", "sync f", "rename to f"}) {
    operations_.failing_call = call;
    const absl::Status status = WriteFileAtomically(path, "new");
    EXPECT_FALSE(status.ok()) << call;
    EXPECT_THAT(status.message(), HasSubstr(path));
    EXPECT_THAT(status.message(), HasSubstr("File too large"));
    EXPECT_EQ(*ReadFile(path), "old");
    EXPECT_EQ(std::distance(fs::directory_iterator(directory_.path()), {}), 1);
  }
}

// File systems over a network or in user space may not sync directories.
TEST_F(DirectoryTest, WritesWhereDirectoriesAreNotSynced) {
  operations_.failing_call = "sync .";
  operations_.failing_error = EINVAL;
  EXPECT_TRUE(WriteFileAtomically(directory_.File("f"), "text").ok());
  EXPECT_EQ(*ReadFile(directory_.File("f")), "text");
  operations_.failing_error = EIO;
  EXPECT_FALSE(WriteFileAtomically(directory_.File("f"), "text").ok());
}

// The number of a process that has ended.
pid_t DeadProcess() {
  const pid_t child = fork();
  if (child == 0) {
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return child;
}

// The name of a temporary file or directory of another process.
std::string TemporaryOf(pid_t process, absl::string_view name = "f") {
  return absl::StrCat(name, ".realetc-", HostName(), "-", ProcessScope(), "-",
                      process, "-0.tmp");
}

TEST_F(DirectoryTest, RemovesTheTemporariesOfDeadProcessesOnly) {
  const std::string host = HostName();
  const std::string scope = ProcessScope();
  EXPECT_EQ(TemporaryName("f", 0), TemporaryOf(getpid()));
  const std::string dead = TemporaryOf(DeadProcess());
  const std::string own = fs::path(TemporaryName("f", 17)).filename();
  directory_.Write(dead, "");
  directory_.Write(own, "");
  std::vector<std::string> kept = {
      TemporaryOf(getppid()),  // runs
      absl::StrCat("f.realetc-elsewhere-", scope, "-", DeadProcess(), "-0.tmp"),
      absl::StrCat("f.realetc-", host, "-", DeadProcess(), "-0.tmp"),
      absl::StrCat("f.tmp-", DeadProcess(), "-0"),
      absl::StrCat("f.realetc-", host, "-", scope, "-x-0.tmp"),
      absl::StrCat("f.realetc-", host, "-", scope, "-", DeadProcess(), ".tmp"),
      dead + ".txt",
      "f.tmp"};
  // Names of another boot or container, where numbers mean other processes.
  for (const std::string& other : {"0" + scope, scope + "0", std::string()}) {
    for (const pid_t process : {DeadProcess(), getpid()}) {
      kept.push_back(
          absl::StrCat("f.realetc-", host, "-", other, "-", process, "-0.tmp"));
    }
  }
  for (const std::string& name : kept) {
    directory_.Write(name, "");
  }
  const std::string folder = TemporaryOf(DeadProcess(), "d");
  fs::create_directory(directory_.File(folder));
  directory_.Write(folder + "/part", "");
  const std::string link = TemporaryOf(DeadProcess(), "l");
  fs::create_directory_symlink(".", directory_.File(link));

  ASSERT_TRUE(RemoveAbandonedTemporaries(directory_.path()).ok());
  EXPECT_FALSE(fs::exists(directory_.File(dead)));
  EXPECT_FALSE(fs::exists(directory_.File(own)));
  for (const std::string& name : kept) {
    EXPECT_TRUE(fs::exists(directory_.File(name))) << name;
  }
  EXPECT_FALSE(fs::exists(directory_.File(folder)));
  EXPECT_TRUE(fs::is_symlink(directory_.File(link)));
  EXPECT_TRUE(RemoveAbandonedTemporaries(directory_.File("nowhere")).ok());
}

// A process that is not root may not send signals to those of root: to the
// parent, if that is root, or to the first process.
TEST_F(DirectoryTest, KeepsTheTemporariesOfOtherUsers) {
  fs::permissions(directory_.path(), fs::perms(0777));
  const std::string dead = directory_.Write(TemporaryOf(DeadProcess()), "");
  const std::string of_parent = directory_.Write(TemporaryOf(getpid()), "");
  const std::string of_first = directory_.Write(TemporaryOf(1), "");
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && setuid(65534) != 0) {
      _exit(2);
    }
    _exit(RemoveAbandonedTemporaries(directory_.path()).ok() ? 0 : 1);
  }
  ASSERT_GT(child, 0);
  int ended = 0;
  ASSERT_EQ(waitpid(child, &ended, 0), child);
  EXPECT_EQ(ended, 0);
  EXPECT_FALSE(fs::exists(dead));
  EXPECT_TRUE(fs::exists(of_parent));
  EXPECT_TRUE(fs::exists(of_first));
}

// As in /tmp, whose sticky bit keeps them for their owners.
TEST_F(DirectoryTest, PassesOverTemporariesThatItMayNotRemove) {
  const std::string folder =
      directory_.File(TemporaryOf(DeadProcess(), "folder"));
  const std::string file = directory_.File(TemporaryOf(DeadProcess(), "file"));
  for (const int error : {EPERM, EACCES, ENOENT, EIO}) {
    operations_.failing_error = error;
    for (const bool of_folder : {true, false}) {
      fs::create_directory(folder);
      ASSERT_TRUE(WriteFileAtomically(file, "").ok());
      operations_.failing_call = of_folder ? "rmdir folder" : "unlink file";
      EXPECT_EQ(RemoveAbandonedTemporaries(directory_.path()).ok(),
                error != EIO)
          << operations_.failing_call << ", error " << error;
      if (error != EIO) {
        EXPECT_EQ(fs::exists(file), !of_folder);
        EXPECT_EQ(fs::exists(folder), of_folder);
      }
    }
  }
}

// By a process that is not root, who may list everything.
TEST_F(DirectoryTest, WritesWhereEntriesMayBeMadeButNotListed) {
  fs::permissions(directory_.path(), fs::perms(0333));
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && setuid(65534) != 0) {
      _exit(2);
    }
    _exit(RemoveAbandonedTemporaries(directory_.path()).ok() &&
                  WriteFileAtomically(directory_.File("f"), "text").ok()
              ? 0
              : 1);
  }
  ASSERT_GT(child, 0);
  int ended = 0;
  ASSERT_EQ(waitpid(child, &ended, 0), child);
  fs::permissions(directory_.path(), fs::perms(0700));
  EXPECT_EQ(ended, 0);
  EXPECT_EQ(*ReadFile(directory_.File("f")), "text");
}

TEST(CheckWritableDirectoryTest, AsksOfTheNearestDirectoryAndMakesNothing) {
  const TemporaryDirectory directory;
  for (const char* name : {"", "/", "/new", "/new/below"}) {
    EXPECT_TRUE(CheckWritableDirectory(directory.path() + name).ok()) << name;
  }
  EXPECT_TRUE(CheckWritableDirectory("new").ok());
  EXPECT_TRUE(fs::is_empty(directory.path()));
}

TEST(CheckWritableDirectoryTest, RefusesWhatIsBelowAFile) {
  TemporaryDirectory directory;
  const std::string file = directory.Write("file", "");
  for (const std::string& path : {file, file + "/a/b"}) {
    const absl::Status status = CheckWritableDirectory(path);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_EQ(status.message(), file + " is no directory");
  }
}

TEST(FreeBytesTest, AreThoseOfTheNearestDirectory) {
  const TemporaryDirectory directory;
  for (const char* name : {"", "/new/below"}) {
    EXPECT_GT(FreeBytes(directory.path() + name).value_or(0), 0u) << name;
  }
  // A file system that counts no blocks.
  EXPECT_EQ(FreeBytes("/proc/self/new"), std::nullopt);
}

// Asked by a process that is not root, who may write everywhere.
TEST(CheckWritableDirectoryTest, NamesTheDirectoryThatMayNotBeWritten) {
  const TemporaryDirectory directory;
  fs::permissions(directory.path(), fs::perms(0555));
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && setuid(65534) != 0) {
      _exit(2);
    }
    const absl::Status status = CheckWritableDirectory(directory.File("a/b"));
    _exit(absl::IsPermissionDenied(status) &&
                  absl::StrContains(status.message(),
                                    "cannot write " + directory.path() + ": ")
              ? 0
              : 1);
  }
  ASSERT_GT(child, 0);
  int ended = 0;
  ASSERT_EQ(waitpid(child, &ended, 0), child);
  EXPECT_EQ(ended, 0);
}

}  // namespace
}  // namespace etc
