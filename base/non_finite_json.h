#ifndef ETC_BASE_NON_FINITE_JSON_H_
#define ETC_BASE_NON_FINITE_JSON_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json_fwd.hpp"

namespace etc {

// Returns true for the text of a number that is infinite or none: NaN, Infinity
// and -Infinity, which Python reads and writes, in upper or lower case, and
// those beyond doubles, as 1e999.
bool IsNonFinite(absl::string_view number);

// As ParseJson, with the JSON text `replacement(number)` in the place of such
// numbers, of which JSON has none. The error is that of the text as it is.
absl::StatusOr<nlohmann::json> ParseJsonWithNonFinite(
    absl::string_view text, const std::string& where,
    absl::FunctionRef<std::string(absl::string_view number)> replacement);

}  // namespace etc

#endif  // ETC_BASE_NON_FINITE_JSON_H_
