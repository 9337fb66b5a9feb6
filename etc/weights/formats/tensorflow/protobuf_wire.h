#ifndef ETC_ETC_WEIGHTS_FORMATS_TENSORFLOW_PROTOBUF_WIRE_H_
#define ETC_ETC_WEIGHTS_FORMATS_TENSORFLOW_PROTOBUF_WIRE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace etc {

// The wire format of protocol buffers (doc/formats.md 0.3), as far as the
// messages of a checkpoint need it. The protobuf library is not used because
// LibTorch links its own, and two versions in one process collide.

enum class WireType : uint8_t {
  kVarint = 0,
  kFixed64 = 1,
  kBytes = 2,  // string, message, packed numbers
  kFixed32 = 5,
};

struct ProtoField {
  uint32_t number = 0;
  WireType type = WireType::kVarint;
  uint64_t value = 0;       // unless kBytes
  absl::string_view bytes;  // of kBytes; refers to the message

  // kInvalidArgument if the field is of another type.
  absl::Status Expect(WireType expected) const;
};

// Calls `visit` for each field of `message` in order, and returns its first
// error. A visitor should ignore fields that it does not know.
//   kInvalidArgument  a byte where no field begins; the message has its offset
absl::Status VisitProtoFields(
    absl::string_view message,
    const std::function<absl::Status(const ProtoField& field)>& visit);

inline void AppendVarint(uint64_t value, std::string* bytes) {
  for (; value >= 0x80; value >>= 7) {
    bytes->push_back(static_cast<char>(value | 0x80));
  }
  bytes->push_back(static_cast<char>(value));
}

// Append a field to `message`. A number that is 0 is omitted.
void AppendVarintField(uint32_t number, uint64_t value, std::string* message);
void AppendBytesField(uint32_t number, absl::string_view bytes,
                      std::string* message);
void AppendFixed32Field(uint32_t number, uint32_t value, std::string* message);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_FORMATS_TENSORFLOW_PROTOBUF_WIRE_H_
