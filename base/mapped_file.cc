#include "base/mapped_file.h"

#include <sys/mman.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/file_operations.h"
#include "base/status_macros.h"

namespace etc {

MappedFile::MappedFile(std::string path, const char* data,
                       const struct stat& opened)
    : path_(std::move(path)),
      data_(data),
      size_(static_cast<size_t>(opened.st_size)),
      opened_(opened) {}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      opened_(other.opened_) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(opened_, other.opened_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) {
    // munmap takes what mmap gave, which was never const.
    munmap(const_cast<char*>(data_), size_);
  }
}

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  ETC_ASSIGN_OR_RETURN(const RandomAccessFile file,
                       RandomAccessFile::Open(path));
  struct stat opened = {};
  if (fstat(file.descriptor(), &opened) != 0) {
    return ErrnoStatus(errno, "look up", path);
  }
  if (opened.st_size == 0) {
    return MappedFile(path, nullptr, opened);
  }
  // The mapping stays when `file` is closed.
  void* const data =
      mmap(nullptr, static_cast<size_t>(opened.st_size), PROT_READ, MAP_SHARED,
           file.descriptor(), /*offset=*/0);
  if (data == MAP_FAILED) {
    return ErrnoStatus(errno, "map", path);
  }
  return MappedFile(path, static_cast<const char*>(data), opened);
}

absl::Status MappedFile::CheckUnchanged() const {
  struct stat now = {};
  // By name: a descriptor for each of many files would be too many. Under
  // another name or without one, the file is out of a writer's reach.
  if (stat(path_.c_str(), &now) != 0 || now.st_dev != opened_.st_dev ||
      now.st_ino != opened_.st_ino) {
    return absl::OkStatus();
  }
  if (now.st_size == opened_.st_size &&
      now.st_mtim.tv_sec == opened_.st_mtim.tv_sec &&
      now.st_mtim.tv_nsec == opened_.st_mtim.tv_nsec) {
    return absl::OkStatus();
  }
  return absl::DataLossError(
      absl::StrCat(path_,
                   " should stay as it is while it is read, but was "
                   "written to: it had ",
                   opened_.st_size, " bytes, and has ", now.st_size));
}

}  // namespace etc
