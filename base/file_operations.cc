#include "base/file_operations.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "absl/strings/str_cat.h"

namespace etc {
namespace {

// Linux moves at most 2^31 - 4096 bytes a call.
constexpr uint64_t kLargestTransfer = uint64_t{1} << 30;

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

int FileOperations::Exchange(const std::string& path,
                             const std::string& other) {
  return renameat2(AT_FDCWD, path.c_str(), AT_FDCWD, other.c_str(),
                   RENAME_EXCHANGE);
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

absl::Status ErrnoStatus(int error, absl::string_view action,
                         absl::string_view object) {
  const absl::Status status =
      absl::ErrnoToStatus(error, absl::StrCat("cannot ", action, " ", object));
  // ESTALE of NFS, for one: no model has diverged, and nobody stopped the run.
  return absl::IsAborted(status) || absl::IsCancelled(status)
             ? absl::UnknownError(status.message())
             : status;
}

absl::Status WriteAll(int descriptor, absl::string_view contents,
                      absl::string_view path) {
  while (!contents.empty()) {
    const ssize_t written = FileOperations::Current().Write(
        descriptor, contents.data(),
        std::min<uint64_t>(contents.size(), kLargestTransfer));
    if (written >= 0) {
      contents.remove_prefix(static_cast<size_t>(written));
    } else if (errno != EINTR) {
      return ErrnoStatus(errno, "write", path);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> ReadAt(int descriptor, uint64_t offset,
                                uint64_t length, char* destination,
                                absl::string_view path) {
  uint64_t done = 0;
  while (done < length) {
    const ssize_t read = pread(descriptor, destination + done,
                               std::min(length - done, kLargestTransfer),
                               static_cast<off_t>(offset + done));
    if (read == 0) {
      break;
    }
    if (read > 0) {
      done += static_cast<uint64_t>(read);
    } else if (errno != EINTR) {
      return ErrnoStatus(errno, "read", path);
    }
  }
  return done;
}

}  // namespace etc
