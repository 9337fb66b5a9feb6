#include "etc/weights/formats/tensorflow/protobuf_wire.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status_macros.h"

namespace etc {
namespace {

constexpr int kTypeBits = 3;

template <typename T>
bool Store(std::optional<T> read, uint64_t* value) {
  *value = read.value_or(0);
  return read.has_value();
}

// Reads the value or the bytes; false if the message ends before.
bool TakePayload(ByteReader* reader, ProtoField* field) {
  switch (field->type) {
    case WireType::kVarint:
      return Store(reader->TakeVarint64(), &field->value);
    case WireType::kFixed64:
      return Store(reader->TakeFixed<uint64_t>(), &field->value);
    case WireType::kFixed32:
      return Store(reader->TakeFixed<uint32_t>(), &field->value);
    case WireType::kBytes: {
      const auto length = reader->TakeVarint64();
      const auto bytes = length ? reader->Take(*length) : std::nullopt;
      field->bytes = bytes.value_or(absl::string_view());
      return bytes.has_value();
    }
  }
  return false;  // groups, and types that do not exist
}

void AppendTag(uint32_t number, WireType type, std::string* message) {
  AppendVarint(uint64_t{number} << kTypeBits | static_cast<uint8_t>(type),
               message);
}

}  // namespace

absl::Status ProtoField::Expect(WireType expected) const {
  if (type == expected) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "field ", number, " should have wire type ", static_cast<int>(expected),
      ", but has ", static_cast<int>(type)));
}

absl::Status VisitProtoFields(
    absl::string_view message,
    const std::function<absl::Status(const ProtoField& field)>& visit) {
  ByteReader reader(message);
  while (reader.left() > 0) {
    const size_t at = reader.position();
    const auto tag = reader.TakeVarint32();
    ProtoField field;
    field.number = static_cast<uint32_t>(tag.value_or(0) >> kTypeBits);
    field.type = static_cast<WireType>(tag.value_or(0) % (1 << kTypeBits));
    if (field.number == 0 || !TakePayload(&reader, &field)) {
      return absl::InvalidArgumentError(
          absl::StrCat("byte ", at, " of ", message.size(),
                       " should begin a protobuf field, but does not"));
    }
    ETC_RETURN_IF_ERROR(visit(field));
  }
  return absl::OkStatus();
}

void AppendVarintField(uint32_t number, uint64_t value, std::string* message) {
  if (value != 0) {
    AppendTag(number, WireType::kVarint, message);
    AppendVarint(value, message);
  }
}

void AppendBytesField(uint32_t number, absl::string_view bytes,
                      std::string* message) {
  AppendTag(number, WireType::kBytes, message);
  AppendVarint(bytes.size(), message);
  absl::StrAppend(message, bytes);
}

void AppendFixed32Field(uint32_t number, uint32_t value, std::string* message) {
  if (value != 0) {
    AppendTag(number, WireType::kFixed32, message);
    AppendFixed(value, message);
  }
}

}  // namespace etc
