#ifndef ETC_ETC_WEIGHTS_FORMATS_SAFETENSORS_SAFETENSORS_HEADER_H_
#define ETC_ETC_WEIGHTS_FORMATS_SAFETENSORS_SAFETENSORS_HEADER_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "etc/weights/formats/safetensors/safetensors.h"

namespace etc {

// The JSON at the beginning of a safetensors file, parsed.
struct SafetensorsHeader {
  std::map<std::string, SafetensorsEntry> entries;
  std::map<std::string, std::string> metadata;
};

// Parses `text` without building a JSON document. Checks each entry by itself
// (doc/formats.md 1.4.4 to 1.4.9, 1.4.15 and 1.4.16), but not data_offsets
// against the file or one another. Messages begin with `source`, the file's
// path.
//   kInvalidArgument  what those rules reject
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(
    absl::string_view text, const std::string& source,
    const SafetensorsLimits& limits);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_FORMATS_SAFETENSORS_SAFETENSORS_HEADER_H_
