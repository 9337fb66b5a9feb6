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
namespace {

absl::Status Failure(const std::string& path, absl::string_view action) {
  return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot ", action));
}

}  // namespace

absl::StatusOr<AppendedFile> AppendedFile::Open(const std::string& path,
                                                int64_t bytes) {
  FileOperations& operations = FileOperations::Current();
  AppendedFile file(
      path,
      operations.Open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  struct stat status = {};
  if (file.descriptor_ < 0 || fstat(file.descriptor_, &status) != 0) {
    return Failure(path, "open");
  }
  const auto found = static_cast<int64_t>(status.st_size);
  if (found > bytes && operations.Truncate(file.descriptor_, bytes) != 0) {
    return Failure(path, "shorten");
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
      return Failure(path_, "write");
    }
    rest.remove_prefix(written < 0 ? 0 : static_cast<size_t>(written));
  }
  size_ += static_cast<int64_t>(bytes.size());
  return absl::OkStatus();
}

absl::Status AppendedFile::Sync() {
  return FileOperations::Current().Sync(descriptor_) == 0
             ? absl::OkStatus()
             : Failure(path_, "sync");
}

}  // namespace etc
