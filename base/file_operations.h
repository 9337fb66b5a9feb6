#ifndef ETC_BASE_FILE_OPERATIONS_H_
#define ETC_BASE_FILE_OPERATIONS_H_

#include <sys/types.h>

#include <cstddef>
#include <string>

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

}  // namespace etc

#endif  // ETC_BASE_FILE_OPERATIONS_H_
