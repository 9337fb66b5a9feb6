#include "base/mapped_file.h"

#include <sys/mman.h>

#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "base/file.h"
#include "base/file_operations.h"
#include "base/status_macros.h"

namespace etc {

MappedFile::MappedFile(std::string path, const char* data, size_t size)
    : path_(std::move(path)), data_(data), size_(size) {}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
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
  if (file.size() == 0) {
    return MappedFile(path, nullptr, 0);
  }
  // The mapping stays when `file` is closed.
  void* const data = mmap(nullptr, file.size(), PROT_READ, MAP_SHARED,
                          file.descriptor(), /*offset=*/0);
  if (data == MAP_FAILED) {
    return ErrnoStatus(errno, "map", path);
  }
  return MappedFile(path, static_cast<const char*>(data), file.size());
}

}  // namespace etc
