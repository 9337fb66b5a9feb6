#include <map>

#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "etc/weights/formats/tensor_writer.h"
#include "etc/weights/formats/tensorflow/protobuf_wire.h"
#include "etc/weights/formats/tensorflow/sorted_table.h"
#include "etc/weights/formats/tensorflow/tensor_bundle.h"

namespace etc {
namespace {

using TensorsByName = std::map<std::string, const TensorToWrite*>;

// The error of tensors that the checkpoint `prefix` cannot have; those of
// writing name their file themselves.
template <typename... Parts>
absl::Status CannotWrite(const std::string& prefix, const Parts&... parts) {
  return InvalidArgument("cannot write ", prefix, ": ", parts...);
}

template <typename... Parts>
absl::Status CannotWriteTensor(const std::string& prefix,
                               const std::string& name, const Parts&... parts) {
  return CannotWrite(prefix, "tensor ", QuotedName(name), " ", parts...);
}

absl::Status CheckTensor(const std::string& prefix,
                         const TensorToWrite& tensor) {
  if (tensor.name.empty() || IsBundleSliceKey(tensor.name) ||
      tensor.name.size() > SortedTableLimits().key_bytes) {
    return CannotWrite(prefix, "no tensor can be called ",
                       QuotedName(tensor.name));
  }
  const Dtype* dtype = FindDtype(tensor.dtype);
  if (dtype == nullptr || dtype->tensorflow == 0 || !dtype->IsReadable()) {
    return CannotWriteTensor(prefix, tensor.name, "cannot be of dtype ",
                             QuotedName(tensor.dtype));
  }
  return absl::OkStatus();
}

// The header of a checkpoint with one shard.
std::string SerializeHeader() {
  std::string version;
  AppendVarintField(1, kBundleFormatVersion, &version);
  std::string header;
  AppendVarintField(1, 1, &header);
  AppendBytesField(3, version, &header);
  return header;
}

// The inverse of ParseBundleEntry.
std::string SerializeEntry(const BundleEntry& entry) {
  std::string shape;
  for (const int64_t dimension : entry.shape) {
    std::string size;
    AppendVarintField(1, static_cast<uint64_t>(dimension), &size);
    AppendBytesField(2, size, &shape);
  }
  const auto dtype = static_cast<uint64_t>(FindDtype(entry.dtype)->tensorflow);
  std::string record;
  AppendVarintField(1, dtype, &record);
  AppendBytesField(2, shape, &record);
  AppendVarintField(3, static_cast<uint64_t>(entry.shard), &record);
  AppendVarintField(4, static_cast<uint64_t>(entry.offset), &record);
  AppendVarintField(5, static_cast<uint64_t>(entry.size), &record);
  AppendFixed32Field(6, entry.masked_crc32c, &record);
  return record;
}

// Writes one tensor's data from byte `offset` on.
absl::StatusOr<BundleEntry> WriteTensor(const std::string& prefix,
                                        const TensorToWrite& tensor,
                                        int64_t offset,
                                        const WriteFunction& write) {
  BundleEntry entry;
  entry.dtype = tensor.dtype;
  entry.shape = tensor.shape;
  entry.offset = offset;
  uint32_t crc = 0;
  ETC_RETURN_IF_ERROR(tensor.write_data([&](absl::string_view piece) {
    crc = ExtendCrc32c(crc, piece);
    entry.size += static_cast<int64_t>(piece.size());
    return write(piece);
  }));
  entry.masked_crc32c = MaskCrc32c(crc);
  if (const absl::Status status = CheckBundleShape(entry.shape); !status.ok()) {
    return CannotWriteTensor(prefix, tensor.name, status.message());
  }
  const int64_t bytes =
      ElementCount(entry.shape) * BundleDtypeBytes(entry.dtype);
  if (entry.size != bytes) {
    return CannotWriteTensor(prefix, tensor.name, "should have ", bytes,
                             " bytes, but has ", entry.size);
  }
  return entry;
}

// Writes the data, one tensor after the other, and adds the index entry of each
// to `records`.
absl::Status WriteData(const std::string& prefix, const TensorsByName& tensors,
                       const WriteFunction& write,
                       std::map<std::string, std::string>* records) {
  int64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    ETC_ASSIGN_OR_RETURN(const BundleEntry entry,
                         WriteTensor(prefix, *tensor, offset, write));
    (*records)[name] = SerializeEntry(entry);
    offset += entry.size;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteTensorFlowCheckpoint(
    const std::string& prefix, const std::vector<TensorToWrite>& tensors) {
  TensorsByName by_name;
  for (const TensorToWrite& tensor : tensors) {
    ETC_RETURN_IF_ERROR(CheckTensor(prefix, tensor));
    if (!by_name.try_emplace(tensor.name, &tensor).second) {
      return CannotWrite(prefix, "two tensors are called ",
                         QuotedName(tensor.name));
    }
  }
  std::map<std::string, std::string> records;
  records[""] = SerializeHeader();
  ETC_RETURN_IF_ERROR(
      WriteFileAtomically(absl::StrCat(prefix, ".data-00000-of-00001"),
                          [&](const WriteFunction& write) {
                            return WriteData(prefix, by_name, write, &records);
                          }));
  return WriteFileAtomically(absl::StrCat(prefix, ".index"),
                             BuildSortedTable(records));
}

}  // namespace etc
