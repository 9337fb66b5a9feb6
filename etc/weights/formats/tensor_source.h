#ifndef ETC_ETC_WEIGHTS_FORMATS_TENSOR_SOURCE_H_
#define ETC_ETC_WEIGHTS_FORMATS_TENSOR_SOURCE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/shape_text.h"

namespace etc {

// A type of tensor elements and its name in each format.
struct Dtype {
  // In safetensors: "F32". A type of TensorFlow that safetensors lacks has
  // TensorFlow's name, "DT_STRING": such tensors are listed, but not read.
  absl::string_view name;
  int bits;            // of one element; 0 if elements differ in size
  int64_t tensorflow;  // the number in its enum DataType; 0: none
  // The torch::ScalarType, "Float" for torch::kFloat32; in Python its storages
  // are of class torch.FloatStorage. Empty: none that we read.
  absl::string_view pytorch;

  bool IsReadable() const { return name.substr(0, 3) != "DT_"; }
};

// All types. Those of safetensors come first, in ascending order of the rank by
// which its reference writer lays out tensors (doc/formats.md 1.3).
inline constexpr Dtype kDtypes[] = {
    {"BOOL", 8, 10, "Bool"},      {"F4", 4, 0, ""},
    {"F6_E2M3", 6, 0, ""},        {"F6_E3M2", 6, 0, ""},
    {"U8", 8, 4, "Byte"},         {"I8", 8, 6, "Char"},
    {"F8_E5M2", 8, 0, ""},        {"F8_E4M3", 8, 0, ""},
    {"F8_E8M0", 8, 0, ""},        {"F8_E4M3FNUZ", 8, 0, ""},
    {"F8_E5M2FNUZ", 8, 0, ""},    {"I16", 16, 5, "Short"},
    {"U16", 16, 17, ""},          {"F16", 16, 19, "Half"},
    {"BF16", 16, 14, "BFloat16"}, {"I32", 32, 3, "Int"},
    {"U32", 32, 22, ""},          {"F32", 32, 1, "Float"},
    {"C64", 64, 0, ""},           {"F64", 64, 2, "Double"},
    {"I64", 64, 9, "Long"},       {"U64", 64, 23, ""},
    {"DT_STRING", 0, 7, ""},      {"DT_COMPLEX64", 64, 8, ""},
    {"DT_QINT8", 8, 11, ""},      {"DT_QUINT8", 8, 12, ""},
    {"DT_QINT32", 32, 13, ""},    {"DT_QINT16", 16, 15, ""},
    {"DT_QUINT16", 16, 16, ""},   {"DT_COMPLEX128", 128, 18, ""},
    {"DT_RESOURCE", 0, 20, ""},   {"DT_VARIANT", 0, 21, ""}};

// The type of this name; null if there is none.
inline const Dtype* FindDtype(absl::string_view name) {
  for (const Dtype& dtype : kDtypes) {
    if (dtype.name == name) {
      return &dtype;
    }
  }
  return nullptr;
}

// A file's description of one tensor.
struct TensorInfo {
  std::string dtype;  // Dtype::name, or "DT_" and an unknown number
  std::vector<int64_t> shape;
};

// "F32 [2, 3]".
inline std::string Describe(const TensorInfo& info) {
  return absl::StrCat(info.dtype, " ", ShapeText(info.shape));
}

// The named tensors of a model in some file format. All descriptions in the
// files are checked when they are opened; data stay on disk until Read.
class TensorSource {
 public:
  virtual ~TensorSource() = default;

  // The file or directory that was opened.
  const std::string& path() const { return path_; }
  // Names of all tensors, in ascending order.
  const std::vector<std::string>& names() const { return names_; }
  // The same, and in no order the names by which Find knows more of them: those
  // that the metadata of safetensors give for a stored tensor.
  std::vector<std::string> NamesAndAliases() const;
  // Texts that the files store beside the tensors: the metadata of safetensors;
  // of a torch.save with tensors as "model" the entries "args" and "cfg", as
  // JSON (pytorch/pytorch_state.h).
  const std::map<std::string, std::string>& metadata() const {
    return metadata_;
  }
  // Oddities of the files that are no reason to refuse them.
  const std::vector<std::string>& warnings() const { return warnings_; }

  // The tensor called `name`. The pointer is the same for two names of one
  // tensor, and valid as long as the source. kNotFound if there is none.
  virtual absl::StatusOr<const TensorInfo*> Find(
      const std::string& name) const = 0;

  // Copies the tensor's data, row-major and little-endian, to `destination`,
  // which holds exactly `size` bytes. Safe to call from several threads.
  //   kNotFound         no such tensor
  //   kInvalidArgument  it has another size, or a dtype that cannot be read
  //   kDataLoss         the checksum is not that of the data
  //   others            the file has shrunk or gone since
  // After an error the contents of `destination` are unspecified.
  virtual absl::Status Read(const std::string& name, char* destination,
                            uint64_t size) const = 0;

 protected:
  explicit TensorSource(std::string path) : path_(std::move(path)) {}
  TensorSource(TensorSource&&) = default;
  TensorSource& operator=(TensorSource&&) = default;

  // Must be called in ascending order.
  void AddName(std::string name) { names_.push_back(std::move(name)); }
  // Keeps existing values of the same keys.
  void AddMetadata(const std::map<std::string, std::string>& metadata) {
    metadata_.insert(metadata.begin(), metadata.end());
  }
  void AddWarning(std::string text) { warnings_.push_back(std::move(text)); }

 private:
  std::string path_;
  std::vector<std::string> names_;
  std::map<std::string, std::string> metadata_;
  std::vector<std::string> warnings_;
};

// The end of a message about a file that is no weights, if it begins as
// failed downloads do: ": a web page"; else empty.
absl::string_view DownloadHint(absl::string_view beginning);

// Opens the weights at `path`, whatever their format:
//
//   safetensors,    a file; an index of shards (.json, doc/formats.md 1.6); a
//   torch.save      directory with `model.safetensors` or `pytorch_model.bin`,
//                   or with the index of one, or with fairseq's `model.pt`
//   TensorFlow V2   a prefix, one of the checkpoint's files, or a directory
//                   (tensorflow_checkpoint.h)
//
// In a directory they are looked for in this order. In safetensors, a tensor
// that is not there is found by the name that the metadata give as the same
// (doc/formats.md 1.3).
//   kNotFound         there are no weights, or a shard is missing
//   kInvalidArgument  what the format's reader or doc/formats.md 1.6 rejects; a
//                     V1 checkpoint of TensorFlow
absl::StatusOr<std::unique_ptr<TensorSource>> OpenTensorSource(
    const std::string& path);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_FORMATS_TENSOR_SOURCE_H_
