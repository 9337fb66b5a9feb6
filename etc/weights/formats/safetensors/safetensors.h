#ifndef ETC_ETC_WEIGHTS_FORMATS_SAFETENSORS_SAFETENSORS_H_
#define ETC_ETC_WEIGHTS_FORMATS_SAFETENSORS_SAFETENSORS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/file.h"
#include "etc/weights/formats/tensor_source.h"

namespace etc {

// One tensor of a safetensors file (formats spec 1.2).
struct SafetensorsEntry : TensorInfo {
  // Bytes [begin, end) of the data buffer.
  uint64_t begin = 0;
  uint64_t end = 0;
};

// What a file may ask of us (formats spec 0.2).
struct SafetensorsLimits {
  uint64_t header_bytes = 100'000'000;
  size_t tensors = 1'000'000;  // as many metadata too
  size_t name_bytes = 4096;
  size_t rank = 32;
  uint64_t elements = uint64_t{1} << 40;  // of one tensor
};

// Bytes of a tensor of this dtype and shape.
//   kInvalidArgument  unknown dtype (ST8), overflow (ST11), sub-byte elements
//                     that fill no whole number of bytes (ST12)
absl::StatusOr<uint64_t> SafetensorsDataBytes(
    absl::string_view dtype, const std::vector<int64_t>& shape);

// A safetensors file, header read and checked as formats spec 1.4 demands.
// Errors name the file, the tensor or the byte, and the rule ("ST10"). Data
// stay on disk until they are asked for. Movable.
class SafetensorsFile final : public TensorSource {
 public:
  static absl::StatusOr<SafetensorsFile> Open(
      const std::string& path, const SafetensorsLimits& limits = {});

  const std::string& path() const override { return file_.path(); }
  const std::vector<std::string>& names() const override { return names_; }
  const std::map<std::string, SafetensorsEntry>& entries() const {
    return entries_;
  }
  const std::map<std::string, std::string>& metadata() const override {
    return metadata_;
  }
  // None.
  const std::vector<std::string>& warnings() const override {
    return warnings_;
  }

  // Points to a SafetensorsEntry. kNotFound (ST14).
  absl::StatusOr<const TensorInfo*> Find(
      const std::string& name) const override;

  absl::Status Read(const std::string& name, char* destination,
                    uint64_t size) const override;

 private:
  explicit SafetensorsFile(RandomAccessFile file);

  RandomAccessFile file_;
  uint64_t data_offset_ = 0;  // bytes before the data buffer
  std::map<std::string, SafetensorsEntry> entries_;
  std::vector<std::string> names_;
  std::map<std::string, std::string> metadata_;
  std::vector<std::string> warnings_;
};

// A tensor to be written.
struct SafetensorsTensor {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  // Hands the tensor's bytes to `write`, in one piece or several. Called once,
  // when it is their turn, so that not all tensors need be in memory at a time.
  std::function<absl::Status(const WriteFunction& write)> write_data;
};

// Writes the file atomically, in the reference writer's order and layout
// (formats spec 1.3).
//   kInvalidArgument  a name that is there twice, is "__metadata__" or no
//                     UTF-8; a dtype or shape that cannot be; more or fewer
//                     bytes than dtype and shape demand
absl::Status WriteSafetensors(
    const std::string& path, const std::vector<SafetensorsTensor>& tensors,
    const std::map<std::string, std::string>& metadata);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_FORMATS_SAFETENSORS_SAFETENSORS_H_
