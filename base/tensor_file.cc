#include "base/tensor_file.h"

#include <c10/util/Exception.h>
#include <fcntl.h>

#include <atomic>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/directory.h"
#include "base/file_operations.h"
#include "base/large_pages.h"

namespace etc {
namespace {

// A file of `directory` in messages.
std::string FileIn(const std::string& directory) {
  return absl::StrCat("a temporary file in ", directory);
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
    throw TensorFileError(ErrnoStatus(errno, "create", FileIn(directory)));
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
  descriptor_ = CreateIn(directory);
  absl::Status written = WriteAll(
      descriptor_,
      {static_cast<const char*>(elements.data_ptr()), elements.nbytes()},
      FileIn(directory));
  if (!written.ok()) {
    FileOperations::Current().Close(descriptor_);
    throw TensorFileError(std::move(written));
  }
}

TensorFile::~TensorFile() { FileOperations::Current().Close(descriptor_); }

torch::Tensor TensorFile::Read() const {
  torch::Tensor tensor = WithLargePages(torch::empty(sizes_, type_));
  const std::string file = FileIn(directory_);
  const absl::StatusOr<uint64_t> read =
      ReadAt(descriptor_, 0, tensor.nbytes(),
             static_cast<char*>(tensor.data_ptr()), file);
  if (!read.ok()) {
    throw TensorFileError(read.status());
  }
  if (*read < tensor.nbytes()) {
    throw TensorFileError(ErrnoStatus(EIO, "read", file));
  }
  return tensor;
}

}  // namespace etc
