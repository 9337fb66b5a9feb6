#ifndef ETC_ETC_WEIGHTS_FORMATS_TENSOR_WRITER_H_
#define ETC_ETC_WEIGHTS_FORMATS_TENSOR_WRITER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/file.h"

namespace etc {

// A tensor to be written to a file.
struct TensorToWrite {
  std::string name;
  std::string dtype;  // Dtype::name
  std::vector<int64_t> shape;
  // Passes the data, row-major and little-endian, to `write` in one or several
  // pieces. Called once, when the data are written, so that not all tensors
  // need be in memory at the same time.
  std::function<absl::Status(const WriteFunction& write)> write_data;
};

// Writes a safetensors file atomically, in the order and layout of the
// reference writer (doc/formats.md 1.3).
//   kInvalidArgument  a name that occurs twice, is "__metadata__" or is not
//                     UTF-8; an unknown dtype or an impossible shape; a number
//                     of bytes that is not that of dtype and shape
absl::Status WriteSafetensors(
    const std::string& path, const std::vector<TensorToWrite>& tensors,
    const std::map<std::string, std::string>& metadata);

// Writes a TensorFlow V2 checkpoint: `prefix`.data-00000-of-00001, with the
// tensors in order of names, then `prefix`.index (doc/formats.md 2.6), each
// atomically. Until the second is written, an older index does not match the
// data; reading then fails by the checksums.
//   kInvalidArgument  a name that occurs twice, is empty or begins with a NUL
//                     byte; a dtype that TensorFlow lacks; a number of bytes
//                     that is not that of dtype and shape
absl::Status WriteTensorFlowCheckpoint(
    const std::string& prefix, const std::vector<TensorToWrite>& tensors);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_FORMATS_TENSOR_WRITER_H_
