#ifndef ETC_TESTS_SUPPORT_SHARED_DATA_H_
#define ETC_TESTS_SUPPORT_SHARED_DATA_H_

#include <cstdlib>
#include <filesystem>
#include <string>

namespace etc {

// Real data sets and vocabularies are not part of this repository. Where a
// folder of them lies beside the checkout (or where ETC_SHARED_DIR says), tests
// use it:
//
//   ETC_SHARED_DATA_OR_SKIP(const std::string vocab,
//                           "data/vocab/bert-uncased/vocab.txt");
inline std::string SharedDataPath(const std::string& relative_path) {
  const char* from_environment = std::getenv("ETC_SHARED_DIR");
  const std::filesystem::path root =
      from_environment != nullptr
          ? std::filesystem::path(from_environment)
          : std::filesystem::path(ETC_SOURCE_DIR) / ".." / "shared";
  return (root / relative_path).lexically_normal().string();
}

}  // namespace etc

// Declares `variable` as the path, or skips the test, saying what is absent.
#define ETC_SHARED_DATA_OR_SKIP(variable, relative_path)                  \
  variable = etc::SharedDataPath(relative_path);                          \
  if (!std::filesystem::exists(etc::SharedDataPath(relative_path)))       \
  GTEST_SKIP() << "needs " << (relative_path)                             \
               << " in the folder of shared data (see ETC_SHARED_DIR in " \
                  "CONTRIBUTING.md)"

#endif  // ETC_TESTS_SUPPORT_SHARED_DATA_H_
