#ifndef ETC_TASKS_OUTPUT_SEALED_JSON_H_
#define ETC_TASKS_OUTPUT_SEALED_JSON_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json_fwd.hpp"

namespace etc {

// Small JSON files that carry the checksum of their own contents: the field
// "crc32c" of an object holds the CRC-32C of the object without that field, as
// CrcText() writes it. A file that was cut, or of which a digit has changed,
// is told from one that is as it was written.

// The text of `object`, sealed.
std::string SealJson(nlohmann::json object);

// The object in `text`, without the field; `source` is named in messages.
//   kDataLoss  it is no JSON object, lacks the field, or is not as it was
//              written
absl::StatusOr<nlohmann::json> OpenSealedJson(absl::string_view text,
                                              const std::string& source);

// The same of a file, of at most 16 MiB. Also errors as of ReadFile.
absl::StatusOr<nlohmann::json> ReadSealedJson(const std::string& path);

// SealJson() into a file, atomically.
absl::Status WriteSealedJson(const std::string& path, nlohmann::json object);

// A CRC-32C as such files hold it: "0x1badf00d".
std::string CrcText(uint32_t crc);

}  // namespace etc

#endif  // ETC_TASKS_OUTPUT_SEALED_JSON_H_
