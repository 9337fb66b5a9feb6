#include "tasks/data/data_files.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace etc {
namespace {

// Returns the paths that match `pattern`, in byte order whatever the locale.
absl::StatusOr<std::vector<std::string>> FindMatches(
    const std::string& pattern) {
  glob_t found = {};
  const std::unique_ptr<glob_t, decltype(&globfree)> owner(&found, globfree);
  const int result = glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found);
  if (result == GLOB_NOMATCH) {
    return absl::NotFoundError(
        absl::StrCat("there is no file that matches ", pattern));
  }
  if (result != 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("not enough memory for the files that match ", pattern));
  }
  std::vector<std::string> paths(found.gl_pathv,
                                 found.gl_pathv + found.gl_pathc);
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> FindDataFiles(
    const std::vector<std::string>& patterns) {
  std::vector<std::string> paths;
  for (const std::string& pattern : patterns) {
    std::error_code ignored;
    if (pattern.find_first_of("*?[\\") == std::string::npos ||
        std::filesystem::exists(pattern, ignored)) {
      paths.push_back(pattern);
      continue;
    }
    ETC_ASSIGN_OR_RETURN(const std::vector<std::string> matches,
                         FindMatches(pattern));
    paths.insert(paths.end(), matches.begin(), matches.end());
  }
  return paths;
}

}  // namespace etc
