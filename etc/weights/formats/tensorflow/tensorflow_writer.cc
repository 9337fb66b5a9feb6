#include <map>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "etc/weights/formats/tensorflow/crc32c.h"
#include "etc/weights/formats/tensorflow/tensorflow_checkpoint.h"

namespace etc {
namespace {

using TensorsByName = std::map<std::string, const TensorFlowTensor*>;

template <typename... Parts>
absl::Status TensorError(const std::string& name, const Parts&... parts) {
  return absl::InvalidArgumentError(
      absl::StrCat("tensor ", QuotedName(name), " ", parts...));
}

absl::Status CheckTensor(const TensorFlowTensor& tensor) {
  if (tensor.name.empty() || IsBundleSliceKey(tensor.name) ||
      tensor.name.size() > SortedTableLimits().key_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("no tensor can be called ", QuotedName(tensor.name)));
  }
  if (!IsReadableBundleDtype(tensor.dtype)) {
    return TensorError(tensor.name, "cannot be of dtype ",
                       QuotedName(tensor.dtype));
  }
  return absl::OkStatus();
}

// The data, one tensor after the other; `records` gets what the index says of
// each.
absl::Status WriteData(const TensorsByName& tensors, const WriteFunction& write,
                       std::map<std::string, std::string>* records) {
  int64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    BundleEntry entry;
    entry.dtype = tensor->dtype;
    entry.shape = tensor->shape;
    entry.offset = offset;
    uint32_t crc = 0;
    ETC_RETURN_IF_ERROR(tensor->write_data([&](absl::string_view piece) {
      crc = ExtendCrc32c(crc, piece);
      entry.size += static_cast<int64_t>(piece.size());
      return write(piece);
    }));
    entry.masked_crc32c = MaskCrc32c(crc);
    const auto record = SerializeBundleEntry(entry);
    if (!record.ok()) {
      return TensorError(name, record.status().message());
    }
    (*records)[name] = *record;
    offset += entry.size;
  }
  return absl::OkStatus();
}

absl::Status Write(const std::string& prefix,
                   const std::vector<TensorFlowTensor>& tensors) {
  TensorsByName by_name;
  for (const TensorFlowTensor& tensor : tensors) {
    ETC_RETURN_IF_ERROR(CheckTensor(tensor));
    if (!by_name.try_emplace(tensor.name, &tensor).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two tensors are called ", QuotedName(tensor.name)));
    }
  }
  std::map<std::string, std::string> records;
  records[""] = SerializeBundleHeader();
  ETC_RETURN_IF_ERROR(
      WriteFileAtomically(absl::StrCat(prefix, ".data-00000-of-00001"),
                          [&](const WriteFunction& write) {
                            return WriteData(by_name, write, &records);
                          }));
  return WriteFileAtomically(absl::StrCat(prefix, ".index"),
                             BuildSortedTable(records));
}

}  // namespace

absl::Status WriteTensorFlowCheckpoint(
    const std::string& prefix, const std::vector<TensorFlowTensor>& tensors) {
  const absl::Status status = Write(prefix, tensors);
  return status.ok() ? status
                     : absl::Status(status.code(),
                                    absl::StrCat("cannot write ", prefix, ": ",
                                                 status.message()));
}

}  // namespace etc
