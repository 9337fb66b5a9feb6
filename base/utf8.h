#ifndef ETC_BASE_UTF8_H_
#define ETC_BASE_UTF8_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace etc {

// The bytes in front of a text that some programs write.
inline constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Returns true if `text` is well-formed UTF-8 (Unicode 15, table 3-7): no
// overlong forms, no surrogates, nothing beyond U+10FFFF.
bool IsUtf8(absl::string_view text);

// Returns true for the first byte of a character in UTF-8.
constexpr bool BeginsCharacter(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
}

// A text of more than `bytes` bytes as its first whole characters of no more,
// and " ...".
std::string Shortened(absl::string_view text, size_t bytes);

// A name from a file for a message: in quotation marks, printable, not longer
// than a line or two.
std::string QuotedName(absl::string_view name);

// Names for a message, not longer than a few lines: "\"a\", \"b\" and 7
// others".
std::string JoinedNames(const std::vector<std::string>& names);

}  // namespace etc

#endif  // ETC_BASE_UTF8_H_
