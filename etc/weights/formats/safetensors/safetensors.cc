#include "etc/weights/formats/safetensors/safetensors.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/shape_text.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "etc/weights/formats/safetensors/safetensors_header.h"

namespace etc {
namespace {

static_assert(std::endian::native == std::endian::little,
              "tensors are written and read as they lie in memory");

constexpr uint64_t kLengthBytes = 8;  // of the number before the header

// `entry` must begin where the one before it ended and hold what it says.
absl::Status CheckEntry(const SafetensorsEntry& entry, uint64_t previous_end,
                        const SafetensorsLimits& limits) {
  if (entry.begin != previous_end || entry.end < entry.begin) {
    return absl::InvalidArgumentError(
        absl::StrCat("data_offsets should begin at ", previous_end,
                     ", where the data before end, but are [", entry.begin,
                     ", ", entry.end, "] (doc/formats.md 1.4.10)"));
  }
  ETC_ASSIGN_OR_RETURN(const uint64_t bytes,
                       SafetensorsDataBytes(entry.dtype, entry.shape));
  uint64_t elements = 1;  // the product was found not to overflow
  for (const int64_t dimension : entry.shape) {
    elements *= static_cast<uint64_t>(dimension);
  }
  if (elements > limits.elements) {
    return absl::InvalidArgumentError(absl::StrCat(
        "should have at most ", limits.elements, " elements, but has ",
        elements, " (doc/formats.md 1.4.16)"));
  }
  if (bytes != entry.end - entry.begin) {
    return absl::InvalidArgumentError(absl::StrCat(
        Describe(entry), " needs ", bytes, " bytes, but data_offsets [",
        entry.begin, ", ", entry.end, "] hold ", entry.end - entry.begin,
        " (doc/formats.md 1.4.12)"));
  }
  return absl::OkStatus();
}

// The entries, in order of their place, must tile the buffer
// (doc/formats.md 1.3).
absl::Status CheckLayout(const std::map<std::string, SafetensorsEntry>& entries,
                         uint64_t buffer_bytes, const std::string& path,
                         const SafetensorsLimits& limits) {
  std::vector<const std::pair<const std::string, SafetensorsEntry>*> ordered;
  ordered.reserve(entries.size());
  for (const auto& named_entry : entries) {
    ordered.push_back(&named_entry);
  }
  std::sort(ordered.begin(), ordered.end(), [](const auto* a, const auto* b) {
    return std::pair(a->second.begin, a->second.end) <
           std::pair(b->second.begin, b->second.end);
  });
  uint64_t end = 0;
  for (const auto* named_entry : ordered) {
    const absl::Status status = CheckEntry(named_entry->second, end, limits);
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": tensor ", QuotedName(named_entry->first), ": ",
                       status.message()));
    }
    end = named_entry->second.end;
  }
  if (end != buffer_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": tensors have ", end, " bytes of data, but the file has ",
        buffer_bytes, " (doc/formats.md 1.4.13)"));
  }
  return absl::OkStatus();
}

}  // namespace

int SafetensorsDtypeRank(absl::string_view dtype) {
  const Dtype* found = FindDtype(dtype);
  return found == nullptr || !found->IsReadable()
             ? -1
             : static_cast<int>(found - std::begin(kDtypes));
}

absl::StatusOr<uint64_t> SafetensorsDataBytes(
    absl::string_view dtype, const std::vector<int64_t>& shape) {
  const int rank = SafetensorsDtypeRank(dtype);
  if (rank < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "unknown dtype ", QuotedName(dtype), " (doc/formats.md 1.4.8)"));
  }
  auto bits = static_cast<uint64_t>(kDtypes[rank].bits);
  // Whole bytes are counted in bytes, so that 2^61 of them do not overflow.
  const uint64_t unit = bits % 8 == 0 ? 8 : 1;
  bits /= unit;
  uint64_t elements = 1;
  for (const int64_t dimension : shape) {
    if (dimension < 0 ||
        __builtin_mul_overflow(elements, static_cast<uint64_t>(dimension),
                               &elements)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the number of elements of shape ", ShapeText(shape),
                       " overflows (doc/formats.md 1.4.11)"));
    }
  }
  uint64_t size = 0;
  if (__builtin_mul_overflow(elements, bits, &size)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the size of ", dtype, " ", ShapeText(shape),
                     " overflows (doc/formats.md 1.4.11)"));
  }
  if (unit == 8) {
    return size;
  }
  if (size % 8 != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        elements, " elements of ", dtype, " are ", size,
        " bits, no whole number of bytes (doc/formats.md 1.4.12)"));
  }
  return size / 8;
}

SafetensorsFile::SafetensorsFile(RandomAccessFile file)
    : TensorSource(file.path()), file_(std::move(file)) {}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(
    const std::string& path, const SafetensorsLimits& limits) {
  ETC_ASSIGN_OR_RETURN(RandomAccessFile opened, RandomAccessFile::Open(path));
  SafetensorsFile file(std::move(opened));
  const uint64_t size = file.file_.size();
  if (size < kLengthBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": a safetensors file has at least 8 bytes, but this has ", size,
        " (doc/formats.md 1.4.1)"));
  }
  uint64_t header_bytes = 0;
  ETC_RETURN_IF_ERROR(
      file.file_.Read(0, kLengthBytes, reinterpret_cast<char*>(&header_bytes)));
  if (header_bytes > limits.header_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": the safetensors header should have at most ",
                     limits.header_bytes, " bytes, but claims ", header_bytes,
                     " (doc/formats.md 1.4.2)"));
  }
  if (header_bytes > size - kLengthBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": the safetensors header claims ", header_bytes,
                     " bytes, but after its length the file has ",
                     size - kLengthBytes, " (doc/formats.md 1.4.3)"));
  }
  file.data_offset_ = kLengthBytes + header_bytes;
  ETC_ASSIGN_OR_RETURN(const std::string text,
                       file.file_.Read(kLengthBytes, header_bytes));
  ETC_ASSIGN_OR_RETURN(SafetensorsHeader header,
                       ParseSafetensorsHeader(text, path, limits));
  ETC_RETURN_IF_ERROR(
      CheckLayout(header.entries, size - file.data_offset_, path, limits));
  file.entries_ = std::move(header.entries);
  for (const auto& [name, entry] : file.entries_) {
    file.AddName(name);
  }
  file.AddMetadata(header.metadata);
  return file;
}

absl::StatusOr<const TensorInfo*> SafetensorsFile::Find(
    const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) {
    return absl::NotFoundError(absl::StrCat(path(), " has no tensor ",
                                            QuotedName(name),
                                            " (doc/formats.md 1.4.14)"));
  }
  return &found->second;
}

absl::Status SafetensorsFile::Read(const std::string& name, char* destination,
                                   uint64_t size) const {
  ETC_RETURN_IF_ERROR(Find(name).status());
  const SafetensorsEntry& entry = entries_.find(name)->second;
  if (size != entry.end - entry.begin) {
    return absl::InvalidArgumentError(absl::StrCat(
        path(), ": tensor ", QuotedName(name), " (", Describe(entry), ") has ",
        entry.end - entry.begin, " bytes, but ", size, " were asked for"));
  }
  return file_.Read(data_offset_ + entry.begin, size, destination);
}

}  // namespace etc
