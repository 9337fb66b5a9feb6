#include "tasks/output/appended_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/directory.h"
#include "base/file_operations.h"
#include "base/status_macros.h"

namespace etc {

absl::StatusOr<AppendedFile> AppendedFile::Open(const std::string& path,
                                                int64_t bytes) {
  FileOperations& operations = FileOperations::Current();
  // Follows no link, or the file at its target would be shortened.
  AppendedFile file(path,
                    operations.Open(path,
                                    O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC |
                                        O_NOFOLLOW | O_NONBLOCK,
                                    0666));
  struct stat status = {};
  const bool is_open =
      file.descriptor_ >= 0 && fstat(file.descriptor_, &status) == 0;
  if (!is_open && errno != ELOOP) {  // which a link gives
    return ErrnoStatus(errno, "open", path);
  }
  if (!is_open || !S_ISREG(status.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " should be a regular file, and no link"));
  }
  const auto found = static_cast<int64_t>(status.st_size);
  if (found > bytes && operations.Truncate(file.descriptor_, bytes) != 0) {
    return ErrnoStatus(errno, "shorten", path);
  }
  file.size_ = std::min(found, bytes);
  const std::string folder = std::filesystem::path(path).parent_path().string();
  ETC_RETURN_IF_ERROR(SyncDirectory(folder.empty() ? "." : folder));
  return file;
}

AppendedFile::~AppendedFile() {
  if (descriptor_ >= 0) {
    FileOperations::Current().Close(descriptor_);
  }
}

absl::Status AppendedFile::Append(absl::string_view bytes) {
  absl::string_view rest = bytes;
  while (!rest.empty()) {
    const ssize_t written =
        FileOperations::Current().Write(descriptor_, rest.data(), rest.size());
    if (written < 0 && errno != EINTR) {
      absl::Status status = ErrnoStatus(errno, "write", path_);
      // Part of a line would be in front of the next one. If this fails too,
      // the first error is the cause.
      FileOperations::Current().Truncate(descriptor_, size_);
      return status;
    }
    rest.remove_prefix(written < 0 ? 0 : static_cast<size_t>(written));
  }
  size_ += static_cast<int64_t>(bytes.size());
  return absl::OkStatus();
}

absl::Status AppendedFile::Sync() {
  return FileOperations::Current().Sync(descriptor_) == 0
             ? absl::OkStatus()
             : ErrnoStatus(errno, "sync", path_);
}

}  // namespace etc
