#include "tasks/commands/formatting.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace etc {

std::string FormatCount(int64_t count) {
  const std::string digits = absl::StrCat(count);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) {
      text += ' ';
    }
    text += digits[i];
  }
  return text;
}

std::string FormatBytes(double bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "kB", "MB", "GB", "TB"};
  size_t unit = 0;
  while (bytes >= 1000 && unit + 1 < kUnits.size()) {
    bytes /= 1000;
    ++unit;
  }
  return absl::StrFormat(bytes < 10 && unit > 0 ? "%.1f %s" : "%.0f %s", bytes,
                         kUnits[unit]);
}

std::string FormatShape(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

}  // namespace etc
