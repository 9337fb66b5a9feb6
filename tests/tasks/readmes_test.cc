// The READMEs of the tasks name their files in a table "| file | takes -> gives
// |", without ".h"; each is there.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace etc {
namespace {

std::filesystem::path TaskDirectory(const std::string& task) {
  return std::filesystem::path(ETC_SOURCE_DIR) / "tasks" / task;
}

// The names in back quotes of the table's first column.
std::set<std::string> NamedFiles(const std::string& task) {
  std::ifstream readme(TaskDirectory(task) / "README.md");
  std::set<std::string> names;
  bool is_table = false;
  for (std::string line; std::getline(readme, line);) {
    is_table = absl::StartsWith(line, is_table ? "|" : "| file |");
    if (!is_table) {
      continue;
    }
    const std::vector<std::string> columns = absl::StrSplit(line, '|');
    const std::vector<std::string> quoted = absl::StrSplit(columns.at(1), '`');
    for (size_t i = 1; i < quoted.size(); i += 2) {
      names.insert(quoted[i]);
    }
  }
  return names;
}

class TaskReadmeTest : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Tasks, TaskReadmeTest,
                         testing::Values("wikihop", "hotpotqa", "openkp", "nq"),
                         [](const auto& task) { return task.param; });

TEST_P(TaskReadmeTest, NamesFilesThatAreThere) {
  const std::set<std::string> names = NamedFiles(GetParam());
  EXPECT_GE(names.size(), 5u);
  for (const std::string& name : names) {
    EXPECT_TRUE(std::filesystem::exists(TaskDirectory(GetParam()) /
                                        absl::StrCat(name, ".h")))
        << "tasks/" << GetParam() << "/README.md names " << name;
  }
}

}  // namespace
}  // namespace etc
