#include "etc/weights/formats/tensorflow/tensor_bundle.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/shape_text.h"
#include "base/status_macros.h"
#include "etc/weights/formats/tensorflow/protobuf_wire.h"

namespace etc {
namespace {

constexpr int64_t kMostShards = 100'000;
constexpr size_t kMostDimensions = 32;
constexpr int64_t kMostBundleElements = int64_t{1} << 40;
constexpr size_t kMostSlices = 1024;

std::string DtypeName(int64_t number) {
  for (const Dtype& dtype : kDtypes) {
    if (dtype.tensorflow == number && number != 0) {
      return std::string(dtype.name);
    }
  }
  return absl::StrCat("DT_", number);
}

absl::Status ReadInt64(const ProtoField& field, int64_t* value) {
  ETC_RETURN_IF_ERROR(field.Expect(WireType::kVarint));
  *value = static_cast<int64_t>(field.value);
  return absl::OkStatus();
}

// The low 32 bits, as protobuf reads an int32 or an enum.
absl::Status ReadInt32(const ProtoField& field, int64_t* value) {
  ETC_RETURN_IF_ERROR(field.Expect(WireType::kVarint));
  *value = static_cast<int32_t>(static_cast<uint32_t>(field.value));
  return absl::OkStatus();
}

struct Version {
  int64_t producer = 0;
  int64_t min_consumer = 0;
  bool is_bad = false;  // our version is among the bad consumers
};

absl::Status ReadBadConsumer(const ProtoField& field, Version* version) {
  if (field.type != WireType::kBytes) {
    int64_t bad = 0;
    ETC_RETURN_IF_ERROR(ReadInt32(field, &bad));
    version->is_bad |= bad == kBundleFormatVersion;
    return absl::OkStatus();
  }
  ByteReader packed(field.bytes);
  while (packed.left() > 0) {
    const auto bad = packed.TakeVarint64();
    if (!bad) {
      return InvalidArgument("bad_consumers should be varints");
    }
    version->is_bad |= static_cast<uint32_t>(*bad) == kBundleFormatVersion;
  }
  return absl::OkStatus();
}

absl::Status ReadVersion(const ProtoField& field, Version* version) {
  ETC_RETURN_IF_ERROR(field.Expect(WireType::kBytes));
  return VisitProtoFields(field.bytes, [&](const ProtoField& part) {
    switch (part.number) {
      case 1:
        return ReadInt32(part, &version->producer);
      case 2:
        return ReadInt32(part, &version->min_consumer);
      case 3:
        return ReadBadConsumer(part, version);
      default:
        return absl::OkStatus();
    }
  });
}

absl::Status ReadDimension(const ProtoField& field,
                           std::vector<int64_t>* shape) {
  ETC_RETURN_IF_ERROR(field.Expect(WireType::kBytes));
  int64_t size = 0;
  ETC_RETURN_IF_ERROR(
      VisitProtoFields(field.bytes, [&](const ProtoField& part) {
        switch (part.number) {
          case 1:
            return ReadInt64(part, &size);
          case 2:
            return part.Expect(WireType::kBytes);
          default:
            return absl::OkStatus();
        }
      }));
  shape->push_back(size);
  return shape->size() <= kMostDimensions
             ? absl::OkStatus()
             : InvalidArgument("should have at most ", kMostDimensions,
                               " dimensions");
}

absl::Status ReadShape(const ProtoField& field, std::vector<int64_t>* shape,
                       bool* is_unknown) {
  ETC_RETURN_IF_ERROR(field.Expect(WireType::kBytes));
  return VisitProtoFields(field.bytes, [&](const ProtoField& part) {
    switch (part.number) {
      case 2:
        return ReadDimension(part, shape);
      case 3: {
        *is_unknown = part.value != 0;
        return part.Expect(WireType::kVarint);
      }
      default:
        return absl::OkStatus();
    }
  });
}

absl::Status ReadExtent(const ProtoField& field, BundleSlice* slice) {
  ETC_RETURN_IF_ERROR(field.Expect(WireType::kBytes));
  BundleExtent extent;
  ETC_RETURN_IF_ERROR(
      VisitProtoFields(field.bytes, [&](const ProtoField& part) {
        switch (part.number) {
          case 1:
            return ReadInt64(part, &extent.start);
          case 2:
            return ReadInt64(part, &extent.length);
          default:
            return absl::OkStatus();
        }
      }));
  slice->push_back(extent);
  return slice->size() <= kMostDimensions
             ? absl::OkStatus()
             : InvalidArgument("a slice should have at most ", kMostDimensions,
                               " dimensions");
}

absl::Status ReadSlice(const ProtoField& field,
                       std::vector<BundleSlice>* slices) {
  ETC_RETURN_IF_ERROR(field.Expect(WireType::kBytes));
  BundleSlice slice;
  ETC_RETURN_IF_ERROR(
      VisitProtoFields(field.bytes, [&](const ProtoField& part) {
        return part.number == 1 ? ReadExtent(part, &slice) : absl::OkStatus();
      }));
  slices->push_back(std::move(slice));
  return slices->size() <= kMostSlices
             ? absl::OkStatus()
             : InvalidArgument("should have at most ", kMostSlices, " slices");
}

// Appends a number to a key so that keys sort as the numbers do: as many bytes
// as it needs, whose count is the number of leading one bits.
void AppendOrderedSigned(int64_t value, std::string* key) {
  static constexpr uint8_t kHeaders[][2] = {
      {0x80, 0}, {0xc0, 0}, {0xe0, 0}, {0xf0, 0},    {0xf8, 0},
      {0xfc, 0}, {0xfe, 0}, {0xff, 0}, {0xff, 0x80}, {0xff, 0xc0}};
  const uint64_t magnitude =
      value >= 0 ? static_cast<uint64_t>(value) : ~static_cast<uint64_t>(value);
  const int length = static_cast<int>(std::bit_width(magnitude)) / 7 + 1;
  for (int i = 0; i < length; ++i) {
    // Sign extension beyond 64 bits.
    const int shift = 8 * (length - 1 - i);
    const auto byte = static_cast<uint8_t>(value >> std::min(shift, 63));
    key->push_back(
        static_cast<char>(byte ^ (i < 2 ? kHeaders[length - 1][i] : 0)));
  }
}

// One byte that counts the bytes, then the bytes, most significant first.
void AppendOrderedUnsigned(uint64_t value, std::string* key) {
  const int length = (static_cast<int>(std::bit_width(value)) + 7) / 8;
  key->push_back(static_cast<char>(length));
  for (int i = length - 1; i >= 0; --i) {
    key->push_back(static_cast<char>(value >> (8 * i)));
  }
}

}  // namespace

absl::StatusOr<int64_t> ParseBundleHeader(absl::string_view record) {
  int64_t shards = 0;
  int64_t endianness = 0;
  Version version;
  const absl::Status status =
      VisitProtoFields(record, [&](const ProtoField& field) {
        switch (field.number) {
          case 1:
            return ReadInt32(field, &shards);
          case 2:
            return ReadInt32(field, &endianness);
          case 3:
            return ReadVersion(field, &version);
          default:
            return absl::OkStatus();
        }
      });
  if (!status.ok()) {
    return InvalidArgument("header: ", status.message(),
                           " (doc/formats.md 2.5.7)");
  }
  if (shards < 1 || shards > kMostShards) {
    return InvalidArgument("header: should have 1 to ", kMostShards,
                           " shards, but has ", shards,
                           " (doc/formats.md 2.5.7)");
  }
  if (endianness != 0) {
    return InvalidArgument(
        "header: data should be little-endian (0), but are ",
        endianness == 1 ? "big-endian" : "of unknown endianness", " (",
        endianness, ") (doc/formats.md 2.5.7)");
  }
  if (version.producer < 0 || version.min_consumer > kBundleFormatVersion ||
      version.is_bad) {
    return InvalidArgument(
        "header: format version ", kBundleFormatVersion,
        " should be able to read it, but the producer, version ",
        version.producer, ", asks for ", version.min_consumer,
        version.is_bad ? " and excludes it" : "", " (doc/formats.md 2.5.7)");
  }
  return shards;
}

absl::StatusOr<BundleEntry> ParseBundleEntry(absl::string_view record) {
  BundleEntry entry;
  int64_t dtype = 0;
  bool is_unknown_rank = false;
  absl::Status status = VisitProtoFields(record, [&](const ProtoField& field) {
    switch (field.number) {
      case 1:
        return ReadInt32(field, &dtype);
      case 2:
        return ReadShape(field, &entry.shape, &is_unknown_rank);
      case 3:
        return ReadInt32(field, &entry.shard);
      case 4:
        return ReadInt64(field, &entry.offset);
      case 5:
        return ReadInt64(field, &entry.size);
      case 6:
        entry.masked_crc32c = static_cast<uint32_t>(field.value);
        return field.Expect(WireType::kFixed32);
      case 7:
        return ReadSlice(field, &entry.slices);
      default:
        return absl::OkStatus();
    }
  });
  if (status.ok()) {
    status = is_unknown_rank ? InvalidArgument("should have a known rank")
                             : CheckBundleShape(entry.shape);
  }
  if (!status.ok()) {
    return InvalidArgument(status.message(), " (doc/formats.md 2.5.8)");
  }
  entry.dtype = DtypeName(dtype);
  return entry;
}

absl::Status CheckBundleShape(const std::vector<int64_t>& shape) {
  int64_t elements = 1;
  for (const int64_t dimension : shape) {
    if (dimension < 0 ||
        __builtin_mul_overflow(elements, dimension, &elements)) {
      return InvalidArgument("shape ", ShapeText(shape), " ",
                             dimension < 0 ? "has a negative dimension"
                                           : "has too many elements to count");
    }
  }
  return elements <= kMostBundleElements
             ? absl::OkStatus()
             : InvalidArgument("shape ", ShapeText(shape),
                               " should have at most ", kMostBundleElements,
                               " elements");
}

int64_t BundleDtypeBytes(absl::string_view dtype) {
  const Dtype* found = FindDtype(dtype);
  return found == nullptr ? 0 : found->bits / 8;
}

std::string BundleSliceKey(absl::string_view name, const BundleSlice& slice) {
  std::string key(1, '\0');
  for (const char c : name) {
    key.push_back(c);
    if (c == '\0') {
      key.push_back('\xff');
    } else if (c == '\xff') {
      key.push_back('\0');
    }
  }
  key.append({'\0', '\1'});
  AppendOrderedUnsigned(slice.size(), &key);
  for (const BundleExtent& extent : slice) {
    AppendOrderedSigned(extent.start, &key);
    AppendOrderedSigned(extent.length, &key);
  }
  return key;
}

bool IsBundleSliceKey(absl::string_view key) {
  return !key.empty() && key.front() == '\0';
}

std::optional<BundleSlice> ResolveSlice(const BundleSlice& slice,
                                        const std::vector<int64_t>& shape) {
  if (slice.size() != shape.size()) {
    return std::nullopt;
  }
  BundleSlice box = slice;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (box[d].length == -1 && box[d].start == 0) {
      box[d].length = shape[d];
    }
    if (box[d].start < 0 || box[d].length < 0 || box[d].start > shape[d] ||
        box[d].length > shape[d] - box[d].start) {
      return std::nullopt;
    }
  }
  return box;
}

std::vector<int64_t> SliceShape(const BundleSlice& box) {
  std::vector<int64_t> lengths;
  for (const BundleExtent& extent : box) {
    lengths.push_back(extent.length);
  }
  return lengths;
}

bool SlicesOverlap(const BundleSlice& a, const BundleSlice& b) {
  for (size_t d = 0; d < a.size(); ++d) {
    if (a[d].start >= b[d].start + b[d].length ||
        b[d].start >= a[d].start + a[d].length) {
      return false;
    }
  }
  return ElementCount(SliceShape(a)) > 0 && ElementCount(SliceShape(b)) > 0;
}

void CopySlice(absl::string_view data, const BundleSlice& box,
               const std::vector<int64_t>& shape, int64_t item_bytes,
               char* destination) {
  if (data.empty()) {
    return;  // the number of rows without elements may be huge
  }
  const size_t rank = shape.size();
  const int64_t row_bytes = (rank == 0 ? 1 : box[rank - 1].length) * item_bytes;
  std::vector<int64_t> index(rank, 0);  // of the row; its last stays 0
  const int64_t rows =
      rank == 0
          ? 1
          : ElementCount(SliceShape(BundleSlice(box.begin(), box.end() - 1)));
  for (int64_t row = 0; row < rows; ++row) {
    int64_t element = 0;
    for (size_t d = 0; d < rank; ++d) {
      element = element * shape[d] + box[d].start + index[d];
    }
    std::copy_n(data.data() + row * row_bytes, row_bytes,
                destination + element * item_bytes);
    for (size_t d = rank; d-- > 0;) {
      if (d + 1 < rank && ++index[d] < box[d].length) {
        break;
      }
      index[d] = 0;
    }
  }
}

int64_t ElementCount(const std::vector<int64_t>& shape) {
  int64_t elements = 1;
  for (const int64_t dimension : shape) {
    elements *= dimension;
  }
  return elements;
}

}  // namespace etc
