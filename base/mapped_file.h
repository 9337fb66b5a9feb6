#ifndef ETC_BASE_MAPPED_FILE_H_
#define ETC_BASE_MAPPED_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace etc {

// A regular file in the address space, for files that are larger than the
// memory and read here and there. The system reads pages when they are first
// touched and drops them when it needs the room. Movable.
//
// The file must not become shorter meanwhile: reading beyond its new end is
// SIGBUS. A file that another replaces by renaming (base/file.h) stays as it
// was.
class MappedFile {
 public:
  // Errors of RandomAccessFile::Open; kResourceExhausted and others if the
  // system cannot map it.
  static absl::StatusOr<MappedFile> Open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  const std::string& path() const { return path_; }
  // The whole file, aligned to a page; an empty file has no bytes.
  absl::string_view bytes() const { return {data_, size_}; }

 private:
  MappedFile(std::string path, const char* data, size_t size);

  std::string path_;
  const char* data_ = nullptr;  // null: nothing is mapped
  size_t size_ = 0;
};

}  // namespace etc

#endif  // ETC_BASE_MAPPED_FILE_H_
