// A file that is written over a long time: what is on disk before, at the end
// and after giving up. That it survives a crash is tested with
// WriteFileAtomically (file_test.cc), which is made of it.

#include "base/temporary_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "base/file.h"
#include "base/file_operations.h"
#include "tests/support/full_disk.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(TemporaryFileTest, BecomesTheTargetWhenItIsMoved) {
  TemporaryDirectory directory;
  const std::string target = directory.Write("a", "old");
  {
    TemporaryFile file(target);
    ASSERT_TRUE(file.Create().ok());
    ASSERT_TRUE(file.Write("....").ok());
    ASSERT_TRUE(file.Write("tail").ok());
    ASSERT_TRUE(file.Overwrite("head").ok());
    // The end is still where it was.
    ASSERT_TRUE(file.Write("!").ok());
    EXPECT_EQ(*ReadFile(file.path()), "headtail!");
    EXPECT_EQ(*ReadFile(target), "old");
    ASSERT_TRUE(file.MoveToTarget().ok());
  }
  EXPECT_EQ(*ReadFile(target), "headtail!");
}

TEST(TemporaryFileTest, IsRemovedUnlessItIsMoved) {
  TemporaryDirectory directory;
  {
    TemporaryFile one(directory.File("a"));
    TemporaryFile other(directory.File("a"));
    ASSERT_TRUE(one.Create().ok());
    ASSERT_TRUE(other.Create().ok());
    EXPECT_NE(one.path(), other.path());
    EXPECT_FALSE(std::filesystem::is_empty(directory.path()));
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(TemporaryFileTest, NamesWhereItCannotBe) {
  TemporaryFile file("/nowhere/a");
  EXPECT_THAT(file.Create().message(),
              HasSubstr("cannot create a temporary file beside /nowhere/a"));
}

// A file system that reports a failed write when the file is closed, as NFS.
class ErrorsOfClose : public FileOperations {
 public:
  int Close(int descriptor) override {
    FileOperations::Close(descriptor);
    errno = EIO;
    return -1;
  }
};

TEST(TemporaryFileTest, SaysThatOverwritingFailedWhenTheFileWasClosed) {
  TemporaryDirectory directory;
  TemporaryFile file(directory.File("a"));
  ASSERT_TRUE(file.Create().ok());
  ASSERT_TRUE(file.Write("....tail").ok());
  ErrorsOfClose operations;
  const ScopedFileOperations scope(&operations);
  EXPECT_THAT(file.Overwrite("head").message(),
              AllOf(HasSubstr("cannot close " + directory.File("a") + ": "),
                    HasSubstr("Input/output error")));
}

TEST(TemporaryFileTest, NamesTheTargetWhenTheDiskIsFull) {
  TemporaryDirectory directory;
  TemporaryFile file(directory.File("a"));
  ASSERT_TRUE(file.Create().ok());
  FullDisk operations;
  const ScopedFileOperations scope(&operations);
  EXPECT_EQ(
      file.Write("head").message(),
      "cannot write " + directory.File("a") + ": No space left on device");
}

}  // namespace
}  // namespace etc
