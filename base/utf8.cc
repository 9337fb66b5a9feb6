#include "base/utf8.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace etc {
namespace {

// Continuation bytes of a lead byte: their count, and the range of the first.
struct Continuation {
  size_t count = 0;  // 0: no lead byte of a longer character
  unsigned char lowest = 0x80;
  unsigned char highest = 0xBF;
};

Continuation After(unsigned char lead) {
  if (0xC2 <= lead && lead <= 0xDF) return {1};
  if (lead == 0xE0) return {2, 0xA0, 0xBF};  // else overlong
  if (lead == 0xED) return {2, 0x80, 0x9F};  // else a surrogate
  if (0xE1 <= lead && lead <= 0xEF) return {2};
  if (lead == 0xF0) return {3, 0x90, 0xBF};  // else overlong
  if (lead == 0xF4) return {3, 0x80, 0x8F};  // else beyond U+10FFFF
  if (0xF1 <= lead && lead <= 0xF3) return {3};
  return {};
}

}  // namespace

bool IsUtf8(absl::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    const auto lead = static_cast<unsigned char>(text[i++]);
    if (lead < 0x80) {
      continue;
    }
    Continuation next = After(lead);
    if (next.count == 0 || next.count > text.size() - i) {
      return false;
    }
    for (; next.count > 0; --next.count) {
      const auto byte = static_cast<unsigned char>(text[i++]);
      if (byte < next.lowest || byte > next.highest) {
        return false;
      }
      next.lowest = 0x80;
      next.highest = 0xBF;
    }
  }
  return true;
}

std::string Shortened(absl::string_view text, size_t bytes) {
  if (text.size() <= bytes) {
    return std::string(text);
  }
  while (bytes > 0 && !BeginsCharacter(text[bytes])) {
    --bytes;
  }
  return absl::StrCat(text.substr(0, bytes), " ...");
}

std::string QuotedName(absl::string_view name) {
  constexpr size_t kLongest = 200;
  const absl::string_view shown = name.substr(0, kLongest);
  return absl::StrCat(
      "\"",
      IsUtf8(shown) ? absl::Utf8SafeCHexEscape(shown) : absl::CHexEscape(shown),
      name.size() > kLongest ? "..." : "", "\"");
}

std::string JoinedNames(const std::vector<std::string>& names) {
  constexpr size_t kLongest = 300;
  std::string joined;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string name = QuotedName(names[i]);
    if (i > 0 && joined.size() + name.size() > kLongest) {
      absl::StrAppend(&joined, " and ", names.size() - i,
                      i + 1 == names.size() ? " other" : " others");
      break;
    }
    absl::StrAppend(&joined, i > 0 ? ", " : "", name);
  }
  return joined;
}

}  // namespace etc
