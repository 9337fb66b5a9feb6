#ifndef ETC_TASKS_DATA_NON_FINITE_JSON_H_
#define ETC_TASKS_DATA_NON_FINITE_JSON_H_

#include <string>

#include "absl/strings/string_view.h"

namespace etc {

// `json` with null for NaN, Infinity and -Infinity outside of strings. Python
// writes them, for labels that are missing say; in JSON there are no such
// numbers.
std::string WithNullForNonFinite(absl::string_view json);

}  // namespace etc

#endif  // ETC_TASKS_DATA_NON_FINITE_JSON_H_
