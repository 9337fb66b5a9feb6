#include "base/tensor_file.h"

#include <c10/util/Exception.h>
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/directory.h"
#include "base/file_operations.h"
#include "base/large_pages.h"

namespace etc {
namespace {

// Linux moves at most 2^31 - 4096 bytes a call.
constexpr uint64_t kMostBytes = uint64_t{1} << 30;

[[noreturn]] void Fail(const char* action, const std::string& directory,
                       int error) {
  throw TensorFileError(absl::ErrnoToStatus(
      error,
      absl::StrCat("cannot ", action, " a temporary file in ", directory)));
}

// A new file, which loses its name at once.
int CreateIn(const std::string& directory) {
  static std::atomic<uint64_t> counter = 0;
  FileOperations& operations = FileOperations::Current();
  std::string path;
  int descriptor = -1;
  do {
    path = TemporaryName(directory + "/tensor", counter++);
    descriptor =
        operations.Open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  } while (descriptor < 0 && errno == EEXIST);
  if (descriptor < 0) {
    Fail("create", directory, errno);
  }
  operations.Unlink(path);
  return descriptor;
}

}  // namespace

TensorFile::TensorFile(const std::string& directory,
                       const torch::Tensor& tensor)
    : directory_(directory),
      sizes_(tensor.sizes().vec()),
      type_(tensor.scalar_type()) {
  TORCH_CHECK(tensor.is_cpu(),
              "a tensor that is written to a file should be "
              "on the CPU, but is on ",
              tensor.device());
  const torch::Tensor elements = tensor.detach().contiguous();
  const char* next = static_cast<const char*>(elements.data_ptr());
  auto left = static_cast<uint64_t>(elements.nbytes());
  descriptor_ = CreateIn(directory);
  FileOperations& operations = FileOperations::Current();
  while (left > 0) {
    const ssize_t written =
        operations.Write(descriptor_, next, std::min(left, kMostBytes));
    if (written < 0 && errno != EINTR) {
      const int error = errno;
      operations.Close(descriptor_);
      Fail("write", directory, error);
    }
    next += std::max<ssize_t>(written, 0);
    left -= static_cast<uint64_t>(std::max<ssize_t>(written, 0));
  }
}

TensorFile::~TensorFile() { FileOperations::Current().Close(descriptor_); }

torch::Tensor TensorFile::Read() const {
  torch::Tensor tensor = WithLargePages(torch::empty(sizes_, type_));
  char* next = static_cast<char*>(tensor.data_ptr());
  auto left = static_cast<uint64_t>(tensor.nbytes());
  off_t place = 0;
  while (left > 0) {
    const ssize_t read =
        pread(descriptor_, next, std::min(left, kMostBytes), place);
    if (read < 0 && errno == EINTR) {
      continue;
    }
    if (read <= 0) {
      Fail("read", directory_, read < 0 ? errno : EIO);
    }
    next += read;
    place += read;
    left -= static_cast<uint64_t>(read);
  }
  return tensor;
}

}  // namespace etc
