#ifndef ETC_ETC_WEIGHTS_FORMATS_TENSOR_SOURCE_H_
#define ETC_ETC_WEIGHTS_FORMATS_TENSOR_SOURCE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace etc {

// What a file says of one tensor.
struct TensorInfo {
  // As safetensors spells it, "F32", "I64", ... whatever the format. Other
  // names stand for what can be listed, but not read ("DT_STRING").
  std::string dtype;
  std::vector<int64_t> shape;
};

// The tensors of a model in some format of weight files. All that files say of
// them was checked when they were opened; the data stay on disk until they are
// asked for.
class TensorSource {
 public:
  virtual ~TensorSource() = default;

  // The file or directory that was asked for.
  virtual const std::string& path() const = 0;
  // Of all tensors, in order.
  virtual const std::vector<std::string>& names() const = 0;
  // Texts that the files store beside the tensors.
  virtual const std::map<std::string, std::string>& metadata() const = 0;
  // What is odd, but no reason to refuse.
  virtual const std::vector<std::string>& warnings() const = 0;

  // The tensor called `name`. The pointer is the same for two names of one
  // tensor, and lives as long as this. kNotFound if there is none.
  virtual absl::StatusOr<const TensorInfo*> Find(
      const std::string& name) const = 0;

  // Copies its data, row-major and little-endian, to `destination`, which holds
  // exactly `size` bytes. Safe to call from several threads.
  //   kNotFound         no such tensor
  //   kInvalidArgument  it has another size, or a dtype that cannot be read
  //   kDataLoss         the checksum is not that of the data
  //   others            the file has shrunk or gone since
  // After an error `destination` holds anything.
  virtual absl::Status Read(const std::string& name, char* destination,
                            uint64_t size) const = 0;

 protected:
  TensorSource() = default;
  TensorSource(const TensorSource&) = default;
  TensorSource(TensorSource&&) = default;
  TensorSource& operator=(const TensorSource&) = default;
  TensorSource& operator=(TensorSource&&) = default;
};

// Opens the weights at `path`, in whichever format they are:
//
//   safetensors     a file, an index (.json) or a directory with either
//   torch.save      (ShardedTensors)
//   TensorFlow V2   a prefix, one of its files or a directory
//                   (TensorFlowCheckpoint)
//
// In a directory they are looked for in this order. kNotFound if there is none
// of them; otherwise what the reader of the format says.
absl::StatusOr<std::unique_ptr<TensorSource>> OpenTensorSource(
    const std::string& path);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_FORMATS_TENSOR_SOURCE_H_
