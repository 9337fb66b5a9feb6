#include "tasks/data/data_files.h"

#include <glob.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <future>
#include <memory>
#include <mutex>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/cpu_limit.h"
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

absl::Status ReadInParallel(
    size_t num_files, uint64_t num_bytes, const FilesListener& listener,
    const std::function<absl::Status(size_t file, const BytesListener& report)>&
        read) {
  std::mutex mutex;
  uint64_t num_read = 0;  // guarded by mutex
  const BytesListener report = [&](uint64_t bytes) {
    if (!listener) {
      return absl::OkStatus();
    }
    const std::lock_guard<std::mutex> lock(mutex);
    num_read += bytes;
    return listener(num_read, num_bytes);
  };
  std::atomic<size_t> next = 0;
  std::atomic<bool> failed = false;
  std::vector<absl::Status> statuses(num_files);  // each of one thread
  const auto read_until_done = [&] {
    size_t file = 0;
    while (!failed && (file = next++) < num_files) {
      statuses[file] = read(file, report);
      if (!statuses[file].ok()) {
        failed = true;
      }
    }
  };
  std::vector<std::future<void>> others;
  try {
    const auto threads =
        std::min(static_cast<size_t>(CpusOfProcess()), num_files);
    for (size_t i = 1; i < threads; ++i) {
      others.push_back(std::async(std::launch::async, read_until_done));
    }
  } catch (const std::system_error&) {
    // No more threads: those that there are read all files just as well.
  }
  read_until_done();
  for (std::future<void>& other : others) {
    other.get();
  }
  for (const absl::Status& status : statuses) {
    ETC_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

}  // namespace etc
