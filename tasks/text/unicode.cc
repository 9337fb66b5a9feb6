#include "tasks/text/unicode.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <cstddef>

namespace etc {

CodePoint NextCodePoint(absl::string_view text, int64_t* at) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  const auto size = static_cast<int64_t>(text.size());
  int64_t i = *at;
  UChar32 c = -1;
  U8_NEXT(bytes, i, size, c);
  *at = i;
  return c;
}

CodePoint PreviousCodePoint(absl::string_view text, int64_t* at) {
  // The macro wants 32-bit positions, and looks at no more than this.
  const int64_t start = std::max(*at - U8_MAX_LENGTH, int64_t{0});
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data()) + start;
  auto i = static_cast<int32_t>(*at - start);
  UChar32 c = -1;
  U8_PREV(bytes, 0, i, c);
  *at = start + i;
  return c;
}

void AppendUtf8(CodePoint c, std::string* text) {
  char bytes[U8_MAX_LENGTH];
  int32_t size = 0;
  U8_APPEND_UNSAFE(bytes, size, c);
  text->append(bytes, size);
}

int64_t CountCodePoints(absl::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char byte) { return !U8_IS_TRAIL(byte); });
}

int64_t CountIllFormedUtf8(absl::string_view text) {
  int64_t count = 0;
  for (int64_t at = 0; at < static_cast<int64_t>(text.size());) {
    count += NextCodePoint(text, &at) < 0 ? 1 : 0;
  }
  return count;
}

WellFormedText WithoutIllFormedUtf8(absl::string_view text) {
  WellFormedText kept;
  for (int64_t at = 0; at < static_cast<int64_t>(text.size());) {
    const int64_t begin = at;
    if (NextCodePoint(text, &at) >= 0) {
      kept.text.append(text.data() + begin, static_cast<size_t>(at - begin));
      kept.sources.resize(kept.text.size(), {.begin = begin, .end = at});
    }
  }
  return kept;
}

int64_t BehindMarks(absl::string_view text, int64_t at) {
  for (int64_t next = at; next < static_cast<int64_t>(text.size()); at = next) {
    const CodePoint c = NextCodePoint(text, &next);
    if (c < 0 || (U_GET_GC_MASK(c) & U_GC_M_MASK) == 0) {
      break;
    }
  }
  return at;
}

bool IsWhiteSpace(CodePoint c) { return c >= 0 && u_isUWhiteSpace(c) != 0; }

bool IsWordCharacter(CodePoint c) {
  constexpr uint32_t kCategories = U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK;
  return c >= 0 && (u_hasBinaryProperty(c, UCHAR_ALPHABETIC) != 0 ||
                    u_hasBinaryProperty(c, UCHAR_JOIN_CONTROL) != 0 ||
                    (U_GET_GC_MASK(c) & kCategories) != 0);
}

bool IsBertSpace(CodePoint c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' ||
         u_charType(c) == U_SPACE_SEPARATOR;
}

bool IsBertDeleted(CodePoint c) {
  if (c == '\t' || c == '\n' || c == '\r') {
    return false;
  }
  const int8_t type = u_charType(c);
  return c == 0xFFFD || type == U_CONTROL_CHAR || type == U_FORMAT_CHAR;
}

bool IsBertIdeograph(CodePoint c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B820 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

bool IsBertPunctuation(CodePoint c) {
  if (c < 0x80) {
    return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) ||
           (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
  }
  return (U_GET_GC_MASK(c) & U_GC_P_MASK) != 0;
}

}  // namespace etc
