// Files in the address space: their bytes, an empty one, what a mapping sees of
// a file that is replaced or written to, and what cannot be mapped.

#include "base/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <utility>

#include "base/file.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using testing::HasSubstr;

TEST(MappedFileTest, HasTheBytesOfTheFile) {
  TemporaryDirectory directory;
  std::string bytes;
  for (int i = 0; i < 10'000; ++i) {
    bytes.push_back(static_cast<char>(i % 251));
  }
  auto file = MappedFile::Open(directory.Write("a", bytes));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->bytes() == bytes);
  EXPECT_EQ(file->path(), directory.File("a"));

  const MappedFile moved = *std::move(file);
  EXPECT_TRUE(moved.bytes() == bytes);
}

TEST(MappedFileTest, MayBeEmpty) {
  TemporaryDirectory directory;
  const auto file = MappedFile::Open(directory.Write("a", ""));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->bytes().empty());
}

TEST(MappedFileTest, StaysAsItWasWhenTheFileIsReplaced) {
  TemporaryDirectory directory;
  const auto file = MappedFile::Open(directory.Write("a", "before"));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(WriteFileAtomically(directory.File("a"), "after").ok());
  EXPECT_EQ(file->bytes(), "before");
  EXPECT_TRUE(file->CheckUnchanged().ok());
  std::filesystem::remove(directory.File("a"));
  EXPECT_TRUE(file->CheckUnchanged().ok());
}

TEST(MappedFileTest, TellsThatTheFileWasWrittenTo) {
  TemporaryDirectory directory;
  const std::string path = directory.Write("a", "before");
  const auto written = std::filesystem::last_write_time(path);
  const auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->CheckUnchanged().ok());
  directory.Write("a", "bef");
  std::filesystem::last_write_time(path, written);
  const absl::Status shorter = file->CheckUnchanged();
  EXPECT_EQ(shorter.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(shorter.message(),
            path +
                " should stay as it is while it is read, but was written "
                "to: it had 6 bytes, and has 3");
  // The same number of bytes, written later.
  directory.Write("a", "behind");
  std::filesystem::last_write_time(path, written + std::chrono::seconds(1));
  EXPECT_FALSE(file->CheckUnchanged().ok());
  std::filesystem::last_write_time(path, written);
  EXPECT_TRUE(file->CheckUnchanged().ok());
}

TEST(MappedFileTest, NamesWhatItCannotMap) {
  TemporaryDirectory directory;
  EXPECT_EQ(MappedFile::Open("/nowhere/a").status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_THAT(MappedFile::Open(directory.path()).status().message(),
              HasSubstr(directory.path()));
}

}  // namespace
}  // namespace etc
