#ifndef ETC_BASE_MAPPED_FILE_H_
#define ETC_BASE_MAPPED_FILE_H_

#include <sys/stat.h>

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace etc {

// A regular file in the address space, for files that are larger than the
// memory and read here and there. The system reads pages when they are first
// touched and drops them when it needs the room. Movable.
//
// The file must not be written to meanwhile: its bytes change with it, and
// reading beyond a new end is SIGBUS. A file that another replaces by renaming
// (base/file.h) stays as it was.
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

  // Checks that the file has the size and the time of its last change that it
  // had when it was opened: to be called before bytes that are read over a long
  // time are read again. OK as well if another file has its name now, or none:
  // the mapping is then of the old one, which no writer reaches by that name.
  // Thread-safe.
  //   kDataLoss  it has not
  absl::Status CheckUnchanged() const;

 private:
  MappedFile(std::string path, const char* data, const struct stat& opened);

  std::string path_;
  const char* data_ = nullptr;  // null: nothing is mapped
  size_t size_ = 0;
  struct stat opened_ = {};
};

}  // namespace etc

#endif  // ETC_BASE_MAPPED_FILE_H_
