#ifndef ETC_ETC_FORMATS_SAFETENSORS_H_
#define ETC_ETC_FORMATS_SAFETENSORS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "etc/formats/file.h"

namespace etc {

// One tensor of a safetensors file (formats spec 1.2).
struct SafetensorsEntry {
  std::string dtype;  // "F32", "I64", ... as the file spells it
  std::vector<int64_t> shape;
  // Bytes [begin, end) of the data buffer.
  uint64_t begin = 0;
  uint64_t end = 0;
};

// Bytes of one element, or 0 for sub-byte types; kInvalidArgument for a dtype
// that the format does not know.
absl::StatusOr<int64_t> SafetensorsDtypeBytes(absl::string_view dtype);

// A safetensors file, header read and checked as formats spec 1.4 demands
// (errors name the rule, "ST10" say, beside file and tensor). Data stay on disk
// until they are asked for.
class SafetensorsFile {
 public:
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  const std::map<std::string, SafetensorsEntry>& entries() const {
    return entries_;
  }
  const std::map<std::string, std::string>& metadata() const {
    return metadata_;
  }

  // Copies the bytes of tensor `name`, as they stand in the file, to
  // `destination`, which holds exactly `size` bytes.
  //   kNotFound  no such tensor (ST14);  kInvalidArgument  other size
  absl::Status Read(const std::string& name, char* destination,
                    uint64_t size) const;

 private:
  SafetensorsFile(RandomAccessFile file, uint64_t data_offset);

  RandomAccessFile file_;
  uint64_t data_offset_ = 0;  // bytes before the data buffer
  std::map<std::string, SafetensorsEntry> entries_;
  std::map<std::string, std::string> metadata_;
};

// A tensor to be written: `data` holds exactly shape x dtype bytes and outlives
// the call.
struct SafetensorsTensor {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  absl::string_view data;
};

// Writes the file atomically, in the reference writer's order and layout
// (formats spec 1.3). kInvalidArgument for duplicate or forbidden names and
// wrong sizes.
absl::Status WriteSafetensors(
    const std::string& path, const std::vector<SafetensorsTensor>& tensors,
    const std::map<std::string, std::string>& metadata);

}  // namespace etc

#endif  // ETC_ETC_FORMATS_SAFETENSORS_H_
