#include "etc/weights/formats/tensorflow/tensor_bundle.h"

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

bool IsBundleSliceKey(absl::string_view key) {
  return !key.empty() && key.front() == '\0';
}

int64_t ElementCount(const std::vector<int64_t>& shape) {
  int64_t elements = 1;
  for (const int64_t dimension : shape) {
    elements *= dimension;
  }
  return elements;
}

}  // namespace etc
