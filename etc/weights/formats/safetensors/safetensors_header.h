#ifndef ETC_ETC_WEIGHTS_FORMATS_SAFETENSORS_SAFETENSORS_HEADER_H_
#define ETC_ETC_WEIGHTS_FORMATS_SAFETENSORS_SAFETENSORS_HEADER_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "etc/weights/formats/safetensors/safetensors.h"

namespace etc {

// The JSON at the beginning of a safetensors file.
struct SafetensorsHeader {
  std::map<std::string, SafetensorsEntry> entries;
  std::map<std::string, std::string> metadata;
};

// Reads the JSON, keeping nothing but what the result holds. Checks each entry
// by itself (ST4 to ST9, ST15, ST16; formats spec 1.4), not where it lies:
// data_offsets are as they stand. Messages begin with `source`.
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(
    absl::string_view text, const std::string& source,
    const SafetensorsLimits& limits);

// Place of `dtype` in the order in which the reference writer lays out tensors,
// widest last (formats spec 1.3), or -1 for a dtype that is unknown.
int SafetensorsDtypeRank(absl::string_view dtype);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_FORMATS_SAFETENSORS_SAFETENSORS_HEADER_H_
