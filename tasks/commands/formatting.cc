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

std::string FormatSeconds(double seconds) {
  struct Unit {
    double seconds;
    const char* name;
  };
  constexpr std::array<Unit, 4> kUnits = {
      {{86400, "days"}, {3600, "h"}, {60, "min"}, {1, "s"}}};
  // Of the next larger unit there is one and a half at least.
  for (const Unit& unit : kUnits) {
    const double count = seconds / unit.seconds;
    if (count >= 1.5 || unit.seconds == 1) {
      return absl::StrFormat(count < 1    ? "%.2f %s"
                             : count < 10 ? "%.1f %s"
                                          : "%.0f %s",
                             count, unit.name);
    }
  }
  return "";
}

std::string FormatShape(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

}  // namespace etc
