#ifndef ETC_ETC_WEIGHTS_FORMATS_SAFETENSORS_SAFETENSORS_H_
#define ETC_ETC_WEIGHTS_FORMATS_SAFETENSORS_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/file.h"
#include "etc/weights/formats/tensor_source.h"

namespace etc {

// One tensor of a safetensors file (doc/formats.md 1.2).
struct SafetensorsEntry : TensorInfo {
  // Bytes [begin, end) of the data buffer.
  uint64_t begin = 0;
  uint64_t end = 0;
};

// The largest file that is read (doc/formats.md 0.2).
struct SafetensorsLimits {
  uint64_t header_bytes = 100'000'000;
  size_t tensors = 1'000'000;  // and as many entries of metadata
  size_t name_bytes = 4096;
  size_t rank = 32;
  uint64_t elements = uint64_t{1} << 40;  // of one tensor
};

// Place of `dtype` in the order in which the reference writer lays out tensors,
// last first (doc/formats.md 1.3); -1 for a dtype that safetensors lacks.
int SafetensorsDtypeRank(absl::string_view dtype);

// Bytes of a tensor of this dtype and shape.
//   kInvalidArgument  a dtype that safetensors lacks (doc/formats.md 1.4.8), an
//                     overflow (1.4.11), sub-byte elements that do not fill
//                     whole bytes (1.4.12)
absl::StatusOr<uint64_t> SafetensorsDataBytes(
    absl::string_view dtype, const std::vector<int64_t>& shape);

// A safetensors file. Its header is checked as doc/formats.md 1.4 demands;
// errors name the file, the tensor or the byte, and the rule ("1.4.10").
// Movable.
class SafetensorsFile final : public TensorSource {
 public:
  static absl::StatusOr<SafetensorsFile> Open(
      const std::string& path, const SafetensorsLimits& limits = {});

  // Points to a SafetensorsEntry. kNotFound (doc/formats.md 1.4.14).
  absl::StatusOr<const TensorInfo*> Find(
      const std::string& name) const override;
  absl::Status Read(const std::string& name, char* destination,
                    uint64_t size) const override;

 private:
  explicit SafetensorsFile(RandomAccessFile file);

  RandomAccessFile file_;
  uint64_t data_offset_ = 0;  // bytes before the data buffer
  std::map<std::string, SafetensorsEntry> entries_;
};

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_FORMATS_SAFETENSORS_SAFETENSORS_H_
