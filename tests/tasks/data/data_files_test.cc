// The files that a pattern names, their order, and that none is an error; the
// reading of several at once.

#include "tasks/data/data_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FindDataFilesTest : public testing::Test {
 protected:
  // The files, without the directory.
  std::vector<std::string> Find(std::vector<std::string> patterns) {
    for (std::string& pattern : patterns) {
      pattern = directory_.File(pattern);
    }
    const auto paths = FindDataFiles(patterns);
    EXPECT_TRUE(paths.ok()) << paths.status();
    std::vector<std::string> names;
    for (const std::string& path : *paths) {
      names.push_back(
          std::filesystem::relative(path, directory_.path()).string());
    }
    return names;
  }
  TemporaryDirectory directory_;
};

TEST_F(FindDataFilesTest, SortsTheFilesOfAPatternByName) {
  for (const char* name :
       {"b-10", "b-09", "B-11", "b-1", "a-09", "\xC3\xA4-09"}) {
    directory_.Write(name, "");
  }
  EXPECT_THAT(Find({"*-??"}),
              ElementsAre("B-11", "a-09", "b-09", "b-10", "\xC3\xA4-09"));
  EXPECT_THAT(Find({"b-[01]?"}), ElementsAre("b-09", "b-10"));
}

TEST_F(FindDataFilesTest, KeepsTheOrderOfPatterns) {
  for (const char* name : {"a0", "a1", "b0", "b1"}) {
    directory_.Write(name, "");
  }
  EXPECT_THAT(Find({"b?", "a1", "a?"}),
              ElementsAre("b0", "b1", "a1", "a0", "a1"));
}

TEST_F(FindDataFilesTest, LooksIntoDirectories) {
  for (const char* name : {"x/dev", "y/dev", ".hidden/dev", "y/.dev"}) {
    std::filesystem::create_directories(
        std::filesystem::path(directory_.File(name)).parent_path());
    directory_.Write(name, "");
  }
  std::filesystem::create_directory_symlink("nowhere",
                                            directory_.File("dangling"));
  EXPECT_THAT(Find({"*/dev"}), ElementsAre("x/dev", "y/dev"));
  EXPECT_THAT(Find({"*/*"}), ElementsAre("x/dev", "y/dev"));
  EXPECT_THAT(Find({"?//../x/d[a-e]v"}), ElementsAre("x/dev", "x/dev"));
}

TEST_F(FindDataFilesTest, TakesPathsAsTheyAre) {
  directory_.Write("a[1]?", "");
  directory_.Write("a1b", "");
  EXPECT_THAT(Find({"a[1]?"}), ElementsAre("a[1]?"));
  EXPECT_THAT(Find({"a\\[1\\]\\?"}), ElementsAre("a[1]?"));
  // Opening it finds out that it is not there.
  EXPECT_THAT(Find({"absent"}), ElementsAre("absent"));
}

TEST_F(FindDataFilesTest, NamesAPatternThatMatchesNothing) {
  directory_.Write("a", "");
  const std::string pattern = directory_.File("b*");
  const auto paths = FindDataFiles({directory_.File("a*"), pattern});
  EXPECT_EQ(paths.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(paths.status().message(),
            "there is no file that matches " + pattern);
}

TEST_F(FindDataFilesTest, AsksForTheFilesOfADirectory) {
  const absl::Status status = FindDataFiles({directory_.path()}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(directory_.path() + " is a directory: name its files"));
}

TEST_F(FindDataFilesTest, TellsTheSameFileByAnyName) {
  const std::string a = directory_.Write("a", "");
  const std::string b = directory_.Write("b", "");
  const std::string link = directory_.File("link");
  std::filesystem::create_symlink("a", link);
  EXPECT_TRUE(CheckNamedOnce({a, b, directory_.File("absent")}).ok());
  EXPECT_EQ(CheckNamedOnce({a, b, a}),
            absl::InvalidArgumentError(absl::StrCat(
                a, " is named twice: a file should be named once")));
  for (const std::string& other : {link, directory_.File("./a")}) {
    EXPECT_THAT(std::string(CheckNamedOnce({a, other}).message()),
                HasSubstr(absl::StrCat(other, " is named twice, also as ", a)));
  }
}

TEST_F(FindDataFilesTest, NamesADirectoryThatCannotBeRead) {
  std::filesystem::create_directory(directory_.File("x"));
  directory_.Write("x/dev", "");
  directory_.Write("y", "");  // no directory: nothing can be in it
  std::filesystem::create_directory_symlink("loop", directory_.File("loop"));
  for (const char* pattern : {"*/d*", "*/dev", "?*/dev*"}) {
    EXPECT_THAT(
        FindDataFiles({directory_.File(pattern)}).status().ToString(),
        AllOf(HasSubstr(directory_.File("loop")), HasSubstr("symbolic links")))
        << pattern;
  }
}

TEST(ReadInParallelTest, ReadsEachFileOnceAndAddsUpItsBytes) {
  constexpr size_t kFiles = 100;
  std::vector<std::atomic<int>> times(kFiles);
  uint64_t last = 0;
  const absl::Status status = ReadInParallel(
      kFiles, /*num_bytes=*/3 * kFiles,
      [&](uint64_t bytes, uint64_t num_bytes) {
        EXPECT_GT(bytes, last);
        EXPECT_EQ(num_bytes, 3 * kFiles);
        last = bytes;
        return absl::OkStatus();
      },
      [&](size_t file, const BytesListener& report) {
        ++times[file];
        const absl::Status one = report(1);
        return one.ok() ? report(2) : one;
      });
  EXPECT_TRUE(status.ok()) << status;
  for (size_t i = 0; i < kFiles; ++i) {
    EXPECT_EQ(times[i], 1) << i;
  }
  EXPECT_EQ(last, 3 * kFiles);
}

TEST(ReadInParallelTest, ReturnsTheErrorOfTheFirstFileThatHasOne) {
  std::atomic<size_t> begun = 0;
  const absl::Status status = ReadInParallel(
      1000, /*num_bytes=*/0, /*listener=*/nullptr,
      [&](size_t file, const BytesListener& /*report*/) {
        ++begun;
        return file % 3 == 2 ? absl::DataLossError(std::to_string(file))
                             : absl::OkStatus();
      });
  EXPECT_EQ(status, absl::DataLossError("2"));
  EXPECT_GE(begun, 3u);
}

TEST(ReadInParallelTest, EndsWithTheErrorOfItsListener) {
  const absl::Status status = ReadInParallel(
      5, /*num_bytes=*/5,
      [](uint64_t bytes, uint64_t /*num_bytes*/) {
        return bytes < 3 ? absl::OkStatus() : absl::CancelledError("stop");
      },
      [](size_t /*file*/, const BytesListener& report) { return report(1); });
  EXPECT_EQ(status, absl::CancelledError("stop"));
}

}  // namespace
}  // namespace etc
