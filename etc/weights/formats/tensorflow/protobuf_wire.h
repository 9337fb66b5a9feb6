#ifndef ETC_ETC_WEIGHTS_FORMATS_TENSORFLOW_PROTOBUF_WIRE_H_
#define ETC_ETC_WEIGHTS_FORMATS_TENSORFLOW_PROTOBUF_WIRE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace etc {

// The wire format of protocol buffers (formats spec 0.3), as far as a
// checkpoint's few messages need it. Not the protobuf library: LibTorch brings
// its own, and two in one process collide.

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
  absl::string_view bytes;  // of the message that is read

  // The field must be of this type; the message says so otherwise.
  absl::Status Expect(WireType expected) const;
};

// Calls `visit` for each field of `message`, in their order there. Returns its
// first error, or kInvalidArgument with the byte of what is no field. A visitor
// leaves alone the fields that it does not know.
absl::Status VisitProtoFields(
    absl::string_view message,
    const std::function<absl::Status(const ProtoField& field)>& visit);

// Append a field to `message`. A number that is 0 is left out.
void AppendVarintField(uint32_t number, uint64_t value, std::string* message);
void AppendBytesField(uint32_t number, absl::string_view bytes,
                      std::string* message);
void AppendFixed32Field(uint32_t number, uint32_t value, std::string* message);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_FORMATS_TENSORFLOW_PROTOBUF_WIRE_H_
