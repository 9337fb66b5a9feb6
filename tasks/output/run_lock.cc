#include "tasks/output/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <system_error>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/file_operations.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

constexpr std::chrono::milliseconds kBetweenAttempts(20);

std::string UtcNow() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  std::array<char, 32> text = {};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

// "process 4711 on node7 since 2026-11-22T08:15:00Z"
std::string HolderIn(const std::string& path) {
  constexpr uint64_t kMostBytes = 4096;
  const auto text = ReadFile(path, kMostBytes);
  const nlohmann::json json =
      ParseJson(text.ok() ? *text : "", path).value_or(nlohmann::json());
  if (!json.is_object() || !json.contains("pid") || !json.contains("host") ||
      !json.contains("since") || !json["pid"].is_number_integer() ||
      !json["host"].is_string() || !json["since"].is_string()) {
    return absl::StrCat("a process that has not yet written into ", path,
                        " which it is");
  }
  return absl::StrCat("process ", json["pid"].get<int64_t>(), " on ",
                      json["host"].get<std::string>(), " since ",
                      json["since"].get<std::string>());
}

// True if the open file is the one at `path`. A start that was refused removes
// the file that it made, and a lock on a removed file protects nothing.
bool IsAt(int descriptor, const std::string& path) {
  struct stat open_file = {};
  struct stat named_file = {};
  return fstat(descriptor, &open_file) == 0 &&
         stat(path.c_str(), &named_file) == 0 &&
         open_file.st_dev == named_file.st_dev &&
         open_file.st_ino == named_file.st_ino;
}

// 0, or the error with which locking failed.
int TryLock(int descriptor, std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (true) {
    const int error = flock(descriptor, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
    if ((error != EWOULDBLOCK && error != EINTR) ||
        std::chrono::steady_clock::now() >= end) {
      return error;
    }
    std::this_thread::sleep_for(kBetweenAttempts);
  }
}

}  // namespace

absl::StatusOr<RunLock> RunLock::Take(const std::string& directory,
                                      std::chrono::milliseconds patience) {
  const std::string path = directory + "/lock";
  // Each time another start may have made, and removed, the file.
  constexpr int kMostFiles = 10;
  for (int file = 0; file < kMostFiles; ++file) {
    const int descriptor = FileOperations::Current().Open(
        path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor < 0) {
      return ErrnoStatus(errno, "open", path);
    }
    RunLock lock(path, descriptor);
    const int error = TryLock(descriptor, patience);
    if (error == EWOULDBLOCK || error == EINTR) {
      return absl::UnavailableError(
          absl::StrCat(directory, " is in use by ", HolderIn(path)));
    }
    if (error != 0) {
      return absl::FailedPreconditionError(absl::StrCat(
          "cannot lock ", path, ": ", std::generic_category().message(error),
          "; the output directory should be on a file system that has locks"));
    }
    if (IsAt(descriptor, path)) {
      return lock;
    }
  }
  return absl::UnavailableError(
      absl::StrCat(path, " is made and removed by other processes"));
}

RunLock::~RunLock() {
  if (descriptor_ >= 0) {
    close(descriptor_);
  }
}

absl::Status RunLock::WriteHolder() const {
  const std::string text =
      JsonText(nlohmann::ordered_json{
          {"pid", getpid()}, {"host", HostName()}, {"since", UtcNow()}}) +
      "\n";
  FileOperations& operations = FileOperations::Current();
  // In place: the lock is on this very file.
  if (operations.Truncate(descriptor_, 0) != 0 ||
      lseek(descriptor_, 0, SEEK_SET) != 0 ||
      operations.Write(descriptor_, text.data(), text.size()) !=
          static_cast<ssize_t>(text.size())) {
    return ErrnoStatus(errno, "write", path_);
  }
  return absl::OkStatus();
}

}  // namespace etc
