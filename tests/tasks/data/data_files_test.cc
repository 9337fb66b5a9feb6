// The files that a pattern names, their order, and that none is an error.

#include "tasks/data/data_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using ::testing::ElementsAre;

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
  for (const char* name : {"x/dev", "y/dev"}) {
    std::filesystem::create_directory(
        std::filesystem::path(directory_.File(name)).parent_path());
    directory_.Write(name, "");
  }
  EXPECT_THAT(Find({"*/dev"}), ElementsAre("x/dev", "y/dev"));
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

}  // namespace
}  // namespace etc
