#include "etc/weights/formats/tensorflow/tensor_bundle.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/byte_reader.h"
#include "base/status_macros.h"
#include "etc/weights/formats/tensorflow/protobuf_wire.h"

namespace etc {
namespace {

constexpr int64_t kFormatVersion = 1;
constexpr int64_t kMostShards = 100'000;
constexpr size_t kLargestRank = 32;
constexpr int64_t kMostElements = int64_t{1} << 40;
constexpr size_t kMostSlices = 1024;

struct Dtype {
  int64_t number;
  absl::string_view name;
  int64_t bytes;
  bool is_readable;
};

constexpr Dtype kDtypes[] = {
    {1, "F32", 4, true},          {2, "F64", 8, true},
    {3, "I32", 4, true},          {4, "U8", 1, true},
    {5, "I16", 2, true},          {6, "I8", 1, true},
    {7, "DT_STRING", 0, false},   {8, "DT_COMPLEX64", 8, false},
    {9, "I64", 8, true},          {10, "BOOL", 1, true},
    {11, "DT_QINT8", 1, false},   {12, "DT_QUINT8", 1, false},
    {13, "DT_QINT32", 4, false},  {14, "BF16", 2, true},
    {15, "DT_QINT16", 2, false},  {16, "DT_QUINT16", 2, false},
    {17, "U16", 2, true},         {18, "DT_COMPLEX128", 16, false},
    {19, "F16", 2, true},         {20, "DT_RESOURCE", 0, false},
    {21, "DT_VARIANT", 0, false}, {22, "U32", 4, true},
    {23, "U64", 8, true},
};

const Dtype* FindDtype(absl::string_view name) {
  const auto found =
      std::find_if(std::begin(kDtypes), std::end(kDtypes),
                   [&](const Dtype& dtype) { return dtype.name == name; });
  return found == std::end(kDtypes) ? nullptr : found;
}

std::string DtypeName(int64_t number) {
  for (const Dtype& dtype : kDtypes) {
    if (dtype.number == number) {
      return std::string(dtype.name);
    }
  }
  return absl::StrCat("DT_", number);
}

template <typename... Parts>
absl::Status Error(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
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
    version->is_bad |= bad == kFormatVersion;
    return absl::OkStatus();
  }
  ByteReader packed(field.bytes);
  while (packed.left() > 0) {
    const auto bad = packed.TakeVarint64();
    if (!bad) {
      return Error("bad_consumers should be varints");
    }
    version->is_bad |= static_cast<uint32_t>(*bad) == kFormatVersion;
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
  return shape->size() <= kLargestRank
             ? absl::OkStatus()
             : Error("should have at most ", kLargestRank, " dimensions");
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
  return slice->size() <= kLargestRank ? absl::OkStatus()
                                       : Error("a slice should have at most ",
                                               kLargestRank, " dimensions");
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
             : Error("should have at most ", kMostSlices, " slices");
}

absl::Status CheckShape(const std::vector<int64_t>& shape) {
  int64_t elements = 1;
  for (const int64_t dimension : shape) {
    if (dimension < 0 ||
        __builtin_mul_overflow(elements, dimension, &elements)) {
      return Error("shape [", absl::StrJoin(shape, ", "), "] ",
                   dimension < 0 ? "has a negative dimension"
                                 : "has too many elements to count");
    }
  }
  return elements <= kMostElements
             ? absl::OkStatus()
             : Error("shape [", absl::StrJoin(shape, ", "), "] should have at ",
                     "most ", kMostElements, " elements");
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
    return Error("header: ", status.message(), " (TF7)");
  }
  if (shards < 1 || shards > kMostShards) {
    return Error("header: should have 1 to ", kMostShards, " shards, but has ",
                 shards, " (TF7)");
  }
  if (endianness != 0) {
    return Error("header: data should be little-endian (0), but are ",
                 endianness == 1 ? "big-endian" : "of unknown endianness", " (",
                 endianness, ") (TF7)");
  }
  if (version.producer < 0 || version.min_consumer > kFormatVersion ||
      version.is_bad) {
    return Error("header: format version ", kFormatVersion,
                 " should be able to read it, but the producer, version ",
                 version.producer, ", asks for ", version.min_consumer,
                 version.is_bad ? " and excludes it" : "", " (TF7)");
  }
  return shards;
}

std::string SerializeBundleHeader() {
  std::string version;
  AppendVarintField(1, kFormatVersion, &version);
  std::string header;
  AppendVarintField(1, 1, &header);
  AppendBytesField(3, version, &header);
  return header;
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
    status = is_unknown_rank ? Error("should have a known rank")
                             : CheckShape(entry.shape);
  }
  if (!status.ok()) {
    return Error(status.message(), " (TF8)");
  }
  entry.dtype = DtypeName(dtype);
  return entry;
}

absl::StatusOr<std::string> SerializeBundleEntry(const BundleEntry& entry) {
  const Dtype* dtype = FindDtype(entry.dtype);
  if (dtype == nullptr) {
    return Error("cannot be of dtype ", entry.dtype);
  }
  ETC_RETURN_IF_ERROR(CheckShape(entry.shape));
  const int64_t bytes = ElementCount(entry.shape) * dtype->bytes;
  if (dtype->bytes > 0 && entry.size != bytes) {
    return Error("should have ", bytes, " bytes, but has ", entry.size);
  }
  std::string shape;
  for (const int64_t dimension : entry.shape) {
    std::string size;
    AppendVarintField(1, static_cast<uint64_t>(dimension), &size);
    AppendBytesField(2, size, &shape);
  }
  std::string record;
  AppendVarintField(1, static_cast<uint64_t>(dtype->number), &record);
  AppendBytesField(2, shape, &record);
  AppendVarintField(3, static_cast<uint64_t>(entry.shard), &record);
  AppendVarintField(4, static_cast<uint64_t>(entry.offset), &record);
  AppendVarintField(5, static_cast<uint64_t>(entry.size), &record);
  AppendFixed32Field(6, entry.masked_crc32c, &record);
  return record;
}

int64_t BundleDtypeBytes(absl::string_view dtype) {
  const Dtype* found = FindDtype(dtype);
  return found == nullptr ? 0 : found->bytes;
}

bool IsReadableBundleDtype(absl::string_view dtype) {
  const Dtype* found = FindDtype(dtype);
  return found != nullptr && found->is_readable;
}

}  // namespace etc
