#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/directory.h"
#include "base/file_operations.h"
#include "base/status_macros.h"
#include "base/temporary_file.h"

namespace etc {
namespace {

absl::Status CheckRange(const RandomAccessFile& file, uint64_t offset,
                        uint64_t length) {
  if (offset > file.size() || length > file.size() - offset) {
    return absl::OutOfRangeError(
        absl::StrCat(file.path(), ": ", length, " bytes from byte ", offset,
                     " were asked for, but the file has ", file.size()));
  }
  return absl::OkStatus();
}

}  // namespace

RandomAccessFile::RandomAccessFile(std::string path, int descriptor,
                                   uint64_t size)
    : path_(std::move(path)), descriptor_(descriptor), size_(size) {}

RandomAccessFile::RandomAccessFile(RandomAccessFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(std::exchange(other.size_, 0)) {}

RandomAccessFile& RandomAccessFile::operator=(
    RandomAccessFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  return *this;
}

RandomAccessFile::~RandomAccessFile() {
  if (descriptor_ >= 0) {
    close(descriptor_);
  }
}

absl::StatusOr<RandomAccessFile> RandomAccessFile::Open(
    const std::string& path) {
  // O_NONBLOCK: a named pipe without a writer must not hold us.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    return ErrnoStatus(errno, "open", path);
  }
  RandomAccessFile file(path, descriptor, 0);
  struct stat status = {};
  if (fstat(descriptor, &status) != 0) {
    return ErrnoStatus(errno, "look up", path);
  }
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " should be a regular file, but is ",
                     S_ISDIR(status.st_mode) ? "a directory" : "none"));
  }
  file.size_ = static_cast<uint64_t>(status.st_size);
  return file;
}

absl::Status RandomAccessFile::Read(uint64_t offset, uint64_t length,
                                    char* destination) const {
  ETC_RETURN_IF_ERROR(CheckRange(*this, offset, length));
  ETC_ASSIGN_OR_RETURN(const uint64_t done,
                       ReadAt(descriptor_, offset, length, destination, path_));
  if (done < length) {
    return absl::DataLossError(absl::StrCat(path_, ": had ", size_,
                                            " bytes, but now ends at byte ",
                                            offset + done));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> RandomAccessFile::Read(uint64_t offset,
                                                   uint64_t length) const {
  ETC_RETURN_IF_ERROR(CheckRange(*this, offset, length));
  std::string bytes(length, '\0');
  ETC_RETURN_IF_ERROR(Read(offset, length, bytes.data()));
  return bytes;
}

absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     uint64_t max_bytes) {
  ETC_ASSIGN_OR_RETURN(const RandomAccessFile file,
                       RandomAccessFile::Open(path));
  if (file.size() > max_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, " should have at most ", max_bytes,
                     " bytes, but has ", file.size()));
  }
  return file.Read(0, file.size());
}

absl::Status WriteFileAtomically(const std::string& path,
                                 absl::string_view contents) {
  return WriteFileAtomically(
      path, [&](const WriteFunction& write) { return write(contents); });
}

absl::Status WriteFileAtomically(
    const std::string& path,
    const std::function<absl::Status(const WriteFunction& write)>& produce) {
  struct stat status = {};
  // Otherwise the rename would put a file in the place of /dev/null.
  if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot write ", path, ": it is there already, and is ",
                     S_ISDIR(status.st_mode) ? "a directory" : "no file"));
  }
  TemporaryFile file(path);
  ETC_RETURN_IF_ERROR(file.Create());
  ETC_RETURN_IF_ERROR(produce(
      [&](absl::string_view contents) { return file.Write(contents); }));
  return file.MoveToTarget();
}

bool IsPlainBaseName(absl::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(absl::string_view("/\\\0", 3)) ==
             absl::string_view::npos;
}

absl::Status CreateDirectories(const std::string& path) {
  std::error_code error;
  // Follows links: a directory by whatever way is good.
  if (std::filesystem::is_directory(path, error)) {
    return absl::OkStatus();
  }
  const std::string parent = FolderOf(path);
  if (!std::filesystem::exists(parent, error) && parent != path) {
    ETC_RETURN_IF_ERROR(CreateDirectories(parent));
  }
  if (FileOperations::Current().MakeDirectory(path) != 0) {
    const int failure = errno;
    // Another process may have been faster; "a/" is "a", which is there.
    return std::filesystem::is_directory(path, error)
               ? absl::OkStatus()
               : ErrnoStatus(failure, "create directory", path);
  }
  return SyncDirectory(parent);
}

}  // namespace etc
