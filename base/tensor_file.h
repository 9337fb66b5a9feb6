#ifndef ETC_BASE_TENSOR_FILE_H_
#define ETC_BASE_TENSOR_FILE_H_

#include <c10/util/Exception.h>
#include <torch/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace etc {

// A file that could not be created, written or read. The message names the
// directory and says why. Programs see a c10::Error, as of all else that
// forward and backward passes throw.
class TensorFileError : public c10::Error {
 public:
  explicit TensorFileError(absl::Status status)
      : c10::Error(c10::SourceLocation{__func__, __FILE__,
                                       static_cast<uint32_t>(__LINE__)},
                   std::string(status.message())),
        status_(std::move(status)) {}

  // The code is that of the system's error.
  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
};

// A tensor of the CPU in a file, for numbers that are needed later and do not
// fit in memory. The file has no name, so that it is gone with this object,
// and with the process however that ends.
//
// Uses FileOperations of the calling thread.
class TensorFile {
 public:
  // Writes the elements, row-major. Throws TensorFileError if that is not
  // possible: there is no such directory, or its disk is full.
  TensorFile(const std::string& directory, const torch::Tensor& tensor);
  ~TensorFile();
  TensorFile(const TensorFile&) = delete;
  TensorFile& operator=(const TensorFile&) = delete;

  // A new tensor of the same elements, without gradient. Throws
  // TensorFileError if they cannot be read.
  torch::Tensor Read() const;

 private:
  const std::string directory_;
  const std::vector<int64_t> sizes_;
  const torch::ScalarType type_;
  int descriptor_ = -1;
};

}  // namespace etc

#endif  // ETC_BASE_TENSOR_FILE_H_
