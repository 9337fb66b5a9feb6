#include "tasks/data/data_files.h"

#include <fnmatch.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <future>
#include <map>
#include <mutex>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/cpu_limit.h"
#include "base/file_operations.h"
#include "base/status_macros.h"

namespace etc {
namespace {

constexpr char kSpecial[] = "*?[\\";

// True if `error` says that nothing has this name.
bool IsAbsence(int error) { return error == ENOENT || error == ENOTDIR; }

// Adds the paths that begin with `found`, "" or a directory with its slash, and
// go on as `rest` says.
absl::Status AddMatches(const std::string& found, const std::string& rest,
                        std::vector<std::string>* paths) {
  const size_t end = rest.find('/');
  const std::string name = rest.substr(0, end);
  const auto add = [&](const std::string& path) {
    if (end != std::string::npos) {
      return AddMatches(path + "/", rest.substr(end + 1), paths);
    }
    struct stat status = {};
    if (lstat(path.c_str(), &status) == 0) {
      paths->push_back(path);
    } else if (!IsAbsence(errno)) {
      return ErrnoStatus(errno, "look for", path);
    }
    return absl::OkStatus();
  };
  if (name.find_first_of(kSpecial) == std::string::npos) {
    return add(found + name);
  }
  const std::string directory = found.empty() ? "." : found;
  std::error_code error;
  std::filesystem::directory_iterator entries(directory, error);
  for (; !error && entries != std::filesystem::end(entries);
       entries.increment(error)) {
    const std::string entry = entries->path().filename().string();
    if (fnmatch(name.c_str(), entry.c_str(), FNM_PERIOD) == 0) {
      ETC_RETURN_IF_ERROR(add(found + entry));
    }
  }
  return !error || IsAbsence(error.value())
             ? absl::OkStatus()
             : ErrnoStatus(error.value(), "look into", directory);
}

// Returns the paths that match `pattern`, in byte order whatever the locale.
// glob(3) would leave out in silence what is in a directory that it cannot
// read.
absl::StatusOr<std::vector<std::string>> FindMatches(
    const std::string& pattern) {
  std::vector<std::string> paths;
  ETC_RETURN_IF_ERROR(AddMatches("", pattern, &paths));
  if (paths.empty()) {
    return absl::NotFoundError(
        absl::StrCat("there is no file that matches ", pattern));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> FindDataFiles(
    const std::vector<std::string>& patterns) {
  std::vector<std::string> paths;
  for (const std::string& pattern : patterns) {
    std::error_code ignored;
    if (std::filesystem::is_directory(pattern, ignored)) {
      return absl::InvalidArgumentError(
          absl::StrCat(pattern, " is a directory: name its files, such as '",
                       pattern, "/*'"));
    }
    if (pattern.find_first_of(kSpecial) == std::string::npos ||
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

absl::Status CheckNamedOnce(const std::vector<std::string>& paths,
                            absl::string_view noun) {
  std::map<std::filesystem::path, std::string> names;
  for (const std::string& path : paths) {
    std::error_code error;  // whoever opens the file reports it
    std::filesystem::path canonical =
        std::filesystem::weakly_canonical(path, error);
    if (error) {
      canonical = path;
    }
    const auto [there, is_new] = names.emplace(std::move(canonical), path);
    if (!is_new) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, " is named twice",
          there->second == path ? ""
                                : absl::StrCat(", also as ", there->second),
          ": a ", noun, " should be named once"));
    }
  }
  return absl::OkStatus();
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
