#include "base/file_operations.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

namespace etc {
namespace {

// Per thread and not per process: a test that replaces the operations must not
// see those of other threads.
thread_local FileOperations* replaced = nullptr;

}  // namespace

int FileOperations::Open(const std::string& path, int flags, mode_t mode) {
  return open(path.c_str(), flags, mode);
}

ssize_t FileOperations::Write(int descriptor, const char* data, size_t size) {
  return write(descriptor, data, size);
}

int FileOperations::Truncate(int descriptor, off_t size) {
  return ftruncate(descriptor, size);
}

int FileOperations::Sync(int descriptor) { return fsync(descriptor); }

int FileOperations::Close(int descriptor) { return close(descriptor); }

int FileOperations::Rename(const std::string& from, const std::string& to) {
  return rename(from.c_str(), to.c_str());
}

int FileOperations::Unlink(const std::string& path) {
  return unlink(path.c_str());
}

int FileOperations::MakeDirectory(const std::string& path) {
  return mkdir(path.c_str(), 0777);
}

int FileOperations::RemoveDirectory(const std::string& path) {
  return rmdir(path.c_str());
}

int FileOperations::SymbolicLink(const std::string& target,
                                 const std::string& path) {
  return symlink(target.c_str(), path.c_str());
}

FileOperations& FileOperations::Current() {
  static FileOperations system;
  return replaced != nullptr ? *replaced : system;
}

ScopedFileOperations::ScopedFileOperations(FileOperations* operations)
    : before_(replaced) {
  replaced = operations;
}

ScopedFileOperations::~ScopedFileOperations() { replaced = before_; }

}  // namespace etc
