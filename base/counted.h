#ifndef ETC_BASE_COUNTED_H_
#define ETC_BASE_COUNTED_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace etc {

// A number and its unit, for messages: Counted(1, "record") is "1 record",
// Counted(2, "record") "2 records". `noun` is the singular of a word that takes
// an "s".
std::string Counted(int64_t count, absl::string_view noun);

}  // namespace etc

#endif  // ETC_BASE_COUNTED_H_
