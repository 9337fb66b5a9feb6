#include "base/temporary_file.h"

#include <fcntl.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "base/directory.h"
#include "base/file_operations.h"
#include "base/status_macros.h"

namespace etc {

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
    return ErrnoStatus(error, "create a temporary file beside", target_);
  }
  return absl::OkStatus();
}

absl::Status TemporaryFile::Write(absl::string_view contents) {
  return WriteAll(descriptor_, contents, target_);
}

absl::Status TemporaryFile::Overwrite(absl::string_view contents) {
  FileOperations& operations = FileOperations::Current();
  // A descriptor of its own, which begins at the first byte.
  const int descriptor = operations.Open(path_, O_WRONLY | O_CLOEXEC, 0);
  if (descriptor < 0) {
    return ErrnoStatus(errno, "open", target_);
  }
  absl::Status written = WriteAll(descriptor, contents, target_);
  if (operations.Close(descriptor) != 0 && written.ok()) {
    return ErrnoStatus(errno, "close", target_);
  }
  return written;
}

absl::Status TemporaryFile::Sync() {
  return FileOperations::Current().Sync(descriptor_) == 0
             ? absl::OkStatus()
             : ErrnoStatus(errno, "sync", target_);
}

absl::Status TemporaryFile::MoveToTarget() {
  ETC_RETURN_IF_ERROR(Sync());
  FileOperations& operations = FileOperations::Current();
  // Some file systems report a failed write only here.
  if (operations.Close(std::exchange(descriptor_, -1)) != 0) {
    return ErrnoStatus(errno, "close", target_);
  }
  if (operations.Rename(path_, target_) != 0) {
    return ErrnoStatus(errno, "replace", target_);
  }
  path_.clear();
  return SyncDirectory(FolderOf(target_));
}

}  // namespace etc
