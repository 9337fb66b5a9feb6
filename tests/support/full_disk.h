#ifndef ETC_TESTS_SUPPORT_FULL_DISK_H_
#define ETC_TESTS_SUPPORT_FULL_DISK_H_

#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "base/file_operations.h"

namespace etc {

// A disk on which `bytes` fit.
class FullDisk : public FileOperations {
 public:
  explicit FullDisk(size_t bytes = 0) : left_(bytes) {}

  ssize_t Write(int descriptor, const char* data, size_t size) override {
    if (left_ == 0) {
      errno = ENOSPC;
      return -1;
    }
    const ssize_t written =
        FileOperations::Write(descriptor, data, std::min(size, left_));
    left_ -= static_cast<size_t>(std::max<ssize_t>(written, 0));
    return written;
  }

 private:
  size_t left_;
};

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_FULL_DISK_H_
