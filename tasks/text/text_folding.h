#ifndef ETC_TASKS_TEXT_TEXT_FOLDING_H_
#define ETC_TASKS_TEXT_TEXT_FOLDING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tasks/text/unicode.h"

namespace etc {

// The forms in which the official programs compare texts: the results of
// Python's str.strip(), str.split() and str.lower() (doc/wikihop.md 1.3). All
// texts are UTF-8; bytes that are not become U+FFFD in lower case, and are
// letters otherwise.

// White space in the sense of Python's str.isspace(), U+001C to U+001F among
// it.
bool IsPythonSpace(CodePoint c);

// `text` without white space at both ends.
absl::string_view StripWhiteSpace(absl::string_view text);

// Returns true if `text` is empty, or white space alone.
bool IsBlank(absl::string_view text);

// The runs of `text` without white space, of which none is empty.
std::vector<absl::string_view> SplitWhiteSpace(absl::string_view text);

// Full Unicode lower case, independent of language: one character may become
// two ("İ"), and a final sigma has its own form. Throws std::length_error for
// more than 2^31 - 1 bytes, as does LowerCaseWithOrigin.
std::string LowerCase(absl::string_view text);

// Lower case of a text, and where each of its bytes comes from.
struct AlignedLowerCase {
  std::string text;
  // [text.size() + 1]: the byte of the original that each byte of `text` stands
  // for, the first one of a character that was changed; at the end the size of
  // the original.
  std::vector<int64_t> origin;
};
AlignedLowerCase LowerCaseWithOrigin(absl::string_view text);

}  // namespace etc

#endif  // ETC_TASKS_TEXT_TEXT_FOLDING_H_
