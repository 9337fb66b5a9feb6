#include "tasks/data/non_finite_json.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/match.h"

namespace etc {
namespace {

// Returns the length, in bytes, of NaN, Infinity or -Infinity at the beginning
// of `text`; 0: there is none.
size_t NonFiniteBytes(absl::string_view text) {
  for (const absl::string_view number : {"NaN", "Infinity", "-Infinity"}) {
    if (absl::StartsWith(text, number)) {
      return number.size();
    }
  }
  return 0;
}

}  // namespace

std::string WithNullForNonFinite(absl::string_view json) {
  std::string text;
  text.reserve(json.size());
  bool is_string = false;
  for (size_t at = 0; at < json.size();) {
    const char c = json[at];
    const size_t number = is_string ? 0 : NonFiniteBytes(json.substr(at));
    if (number > 0) {
      text += "null";
      at += number;
      continue;
    }
    const size_t size =
        std::min<size_t>(is_string && c == '\\' ? 2 : 1, json.size() - at);
    is_string = is_string != (c == '"');
    text.append(json.data() + at, size);
    at += size;
  }
  return text;
}

}  // namespace etc
