#ifndef ETC_TESTS_SUPPORT_TASK_DIRECTORIES_H_
#define ETC_TESTS_SUPPORT_TASK_DIRECTORIES_H_

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace etc {

// The benchmarks, sorted: the directories of tasks/ that have configurations,
// but for pre-training and translation, whose data and tests are others.
inline std::vector<std::string> TaskDirectories() {
  std::vector<std::string> tasks;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(ETC_SOURCE_DIR) / "tasks")) {
    if (std::filesystem::exists(entry.path() / "configs") &&
        entry.path().filename() != "pretrain" &&
        entry.path().filename() != "translation") {
      tasks.push_back(entry.path().filename().string());
    }
  }
  std::sort(tasks.begin(), tasks.end());
  return tasks;
}

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_TASK_DIRECTORIES_H_
