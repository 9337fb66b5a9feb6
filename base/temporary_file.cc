#include "base/temporary_file.h"

#include <fcntl.h>
#include <sys/types.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/directory.h"
#include "base/file_operations.h"
#include "base/status_macros.h"

namespace etc {
namespace {

absl::Status TemporaryFileError(int error, absl::string_view action,
                                absl::string_view path) {
  return absl::ErrnoToStatus(error, absl::StrCat("cannot ", action, " ", path));
}

absl::Status WriteAll(int descriptor, absl::string_view contents,
                      const std::string& path) {
  // Linux moves at most 2^31 - 4096 bytes a call.
  constexpr uint64_t kLargestWrite = uint64_t{1} << 30;
  while (!contents.empty()) {
    const ssize_t written = FileOperations::Current().Write(
        descriptor, contents.data(),
        std::min<uint64_t>(contents.size(), kLargestWrite));
    if (written < 0) {
      if (errno == EINTR) {
        continue;
      }
      return TemporaryFileError(errno, "write", path);
    }
    contents.remove_prefix(written);
  }
  return absl::OkStatus();
}

}  // namespace

TemporaryFile::TemporaryFile(std::string target) : target_(std::move(target)) {}

TemporaryFile::~TemporaryFile() {
  FileOperations& operations = FileOperations::Current();
  if (descriptor_ >= 0) {
    operations.Close(descriptor_);
  }
  if (!path_.empty()) {
    operations.Unlink(path_);
  }
}

absl::Status TemporaryFile::Create() {
  static std::atomic<uint64_t> counter = 0;
  do {
    path_ = TemporaryName(target_, counter++);
    // Not mkstemp, whose files nobody else may read.
    descriptor_ = FileOperations::Current().Open(
        path_, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor_ < 0 && errno == EEXIST);
  if (descriptor_ < 0) {
    const int error = errno;
    path_.clear();
    return TemporaryFileError(error, "create a temporary file beside", target_);
  }
  return absl::OkStatus();
}

absl::Status TemporaryFile::Write(absl::string_view contents) {
  return WriteAll(descriptor_, contents, path_);
}

absl::Status TemporaryFile::Overwrite(absl::string_view contents) {
  FileOperations& operations = FileOperations::Current();
  // A descriptor of its own, which begins at the first byte.
  const int descriptor = operations.Open(path_, O_WRONLY | O_CLOEXEC, 0);
  if (descriptor < 0) {
    return TemporaryFileError(errno, "open", path_);
  }
  absl::Status written = WriteAll(descriptor, contents, path_);
  if (operations.Close(descriptor) != 0 && written.ok()) {
    return TemporaryFileError(errno, "close", path_);
  }
  return written;
}

absl::Status TemporaryFile::MoveToTarget() {
  FileOperations& operations = FileOperations::Current();
  if (operations.Sync(descriptor_) != 0) {
    return TemporaryFileError(errno, "sync", path_);
  }
  // Some file systems report a failed write only here.
  if (operations.Close(std::exchange(descriptor_, -1)) != 0) {
    return TemporaryFileError(errno, "close", path_);
  }
  if (operations.Rename(path_, target_) != 0) {
    return TemporaryFileError(errno, "replace", target_);
  }
  path_.clear();
  return SyncDirectory(FolderOf(target_));
}

}  // namespace etc
