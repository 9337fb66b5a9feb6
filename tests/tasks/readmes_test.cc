// The READMEs of the tasks name their headers in a table "| file | takes ->
// gives |", without ".h": all of them, and no others.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "tests/support/task_directories.h"

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
                         testing::ValuesIn(TaskDirectories()),
                         [](const auto& task) { return task.param; });

TEST_P(TaskReadmeTest, NamesTheFilesThatAreThere) {
  std::set<std::string> headers;
  for (const auto& entry :
       std::filesystem::directory_iterator(TaskDirectory(GetParam()))) {
    if (entry.path().extension() == ".h") {
      headers.insert(entry.path().stem().string());
    }
  }
  EXPECT_FALSE(headers.empty());
  EXPECT_EQ(NamedFiles(GetParam()), headers);
}

}  // namespace
}  // namespace etc
