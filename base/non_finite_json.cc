#include "base/non_finite_json.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

// Replaces numbers outside of strings that are not finite.
std::string WithoutNonFinite(
    absl::string_view json,
    absl::FunctionRef<std::string(absl::string_view number)> replacement) {
  constexpr char kEndsOfNumbers[] = "{}[]:, \t\r\n\"";
  std::string text;
  bool is_string = false;
  for (size_t at = 0; at < json.size();) {
    const char c = json[at];
    size_t size = is_string && c == '\\' ? 2 : 1;
    if (!is_string) {
      size = std::max<size_t>(
          1,
          std::min(json.find_first_of(kEndsOfNumbers, at), json.size()) - at);
    }
    is_string = is_string != (c == '"');
    const absl::string_view part = json.substr(at, size);
    if (!is_string && IsNonFinite(part)) {
      absl::StrAppend(&text, replacement(part));
    } else {
      absl::StrAppend(&text, part);
    }
    at += size;
  }
  return text;
}

}  // namespace

bool IsNonFinite(absl::string_view number) {
  double value = 0;
  return absl::SimpleAtod(number, &value) && !std::isfinite(value);
}

absl::StatusOr<nlohmann::json> ParseJsonWithNonFinite(
    absl::string_view text, const std::string& where,
    absl::FunctionRef<std::string(absl::string_view number)> replacement) {
  absl::StatusOr<nlohmann::json> parsed = ParseJson(text, where);
  if (!parsed.ok()) {
    absl::StatusOr<nlohmann::json> replaced =
        ParseJson(WithoutNonFinite(text, replacement), where);
    if (replaced.ok()) {
      return replaced;
    }
  }
  return parsed;
}

}  // namespace etc
