#ifndef ETC_BASE_FILE_OPERATIONS_H_
#define ETC_BASE_FILE_OPERATIONS_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace etc {

// The calls by which this library changes a file system. Each is the system
// call of its name: -1 and errno on failure. A test that derives from it sees
// which calls are made in which order, and makes any of them fail.
class FileOperations {
 public:
  virtual ~FileOperations() = default;

  // Creates a file, or opens it to be written, or opens a directory to be
  // synced.
  virtual int Open(const std::string& path, int flags, mode_t mode);
  virtual ssize_t Write(int descriptor, const char* data, size_t size);
  virtual int Truncate(int descriptor, off_t size);
  virtual int Sync(int descriptor);
  virtual int Close(int descriptor);
  virtual int Rename(const std::string& from, const std::string& to);
  // renameat2 with RENAME_EXCHANGE, which not all file systems have (EINVAL).
  virtual int Exchange(const std::string& path, const std::string& other);
  virtual int Unlink(const std::string& path);
  virtual int MakeDirectory(const std::string& path);
  virtual int RemoveDirectory(const std::string& path);
  virtual int SymbolicLink(const std::string& target, const std::string& path);

  // The operations of the calling thread: the system calls, or the replacement
  // installed by a ScopedFileOperations of this thread.
  static FileOperations& Current();
};

// Makes the calling thread use `operations` until the end of the scope.
class ScopedFileOperations {
 public:
  explicit ScopedFileOperations(FileOperations* operations);
  ~ScopedFileOperations();
  ScopedFileOperations(const ScopedFileOperations&) = delete;
  ScopedFileOperations& operator=(const ScopedFileOperations&) = delete;

 private:
  FileOperations* const before_;
};

// "cannot <action> <object>" and the reason, of a system call that failed with
// `error`, one of errno. The code is that of absl::ErrnoToStatus, but kUnknown
// in place of kAborted and kCancelled, which mean a model that has diverged and
// a stop.
absl::Status ErrnoStatus(int error, absl::string_view action,
                         absl::string_view object);

// Writes all of `contents` by FileOperations of the calling thread. `path`
// names the file in errors.
absl::Status WriteAll(int descriptor, absl::string_view contents,
                      absl::string_view path);

// Reads `length` bytes from byte `offset` on into `destination`. Returns how
// many there were: fewer if the file ends before.
absl::StatusOr<uint64_t> ReadAt(int descriptor, uint64_t offset,
                                uint64_t length, char* destination,
                                absl::string_view path);

}  // namespace etc

#endif  // ETC_BASE_FILE_OPERATIONS_H_
