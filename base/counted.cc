#include "base/counted.h"

#include "absl/strings/str_cat.h"

namespace etc {

std::string Counted(int64_t count, absl::string_view noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

}  // namespace etc
