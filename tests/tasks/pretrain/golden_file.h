#ifndef ETC_TESTS_TASKS_PRETRAIN_GOLDEN_FILE_H_
#define ETC_TESTS_TASKS_PRETRAIN_GOLDEN_FILE_H_

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace etc {

// null if it is no JSON.
inline nlohmann::json ReadGolden(const std::string& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
}

}  // namespace etc

#endif  // ETC_TESTS_TASKS_PRETRAIN_GOLDEN_FILE_H_
