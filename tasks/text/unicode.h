#ifndef ETC_TASKS_TEXT_UNICODE_H_
#define ETC_TASKS_TEXT_UNICODE_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tasks/text/byte_range.h"

namespace etc {

// A Unicode code point.
using CodePoint = int32_t;

// The code point at byte `*at` of `text`, `*at` moving behind it; or -1, `*at`
// moving behind a maximal subpart of an ill-formed sequence (Unicode 15.0,
// section 3.9), at least one byte. Overlong forms, surrogates and values above
// U+10FFFF are ill-formed. 0 <= *at < text.size().
CodePoint NextCodePoint(absl::string_view text, int64_t* at);

// The same backwards: the code point that ends at byte `*at`, which moves to
// its first byte. 0 < *at <= text.size().
CodePoint PreviousCodePoint(absl::string_view text, int64_t* at);

// Appends the UTF-8 form of a code point.
void AppendUtf8(CodePoint c, std::string* text);

// Code points of a valid UTF-8 text.
int64_t CountCodePoints(absl::string_view text);

// Ill-formed sequences of `text` (maximal subparts): 0 if it is valid UTF-8.
// The tokenizers drop these silently; count them to report them.
int64_t CountIllFormedUtf8(absl::string_view text);

// A text without its ill-formed sequences.
struct WellFormedText {
  std::string text;
  // The bytes of the original character, for each byte of `text`.
  std::vector<ByteRange> sources;
};

WellFormedText WithoutIllFormedUtf8(absl::string_view text);

// The end of the combining marks (categories M*) that follow byte `at`, at most
// text.size(); `at` itself if there is none. Pieces leave out marks that a
// normalizer drops.
int64_t BehindMarks(absl::string_view text, int64_t at);

// Brings each run of marks, whose combining class is not 0, into canonical
// order. `class_of` gives the class of a character.
template <typename Character, typename ClassOf>
void OrderMarks(const ClassOf& class_of, std::vector<Character>* characters) {
  const auto is_mark = [&](const Character& c) { return class_of(c) != 0; };
  const auto by_class = [&](const Character& a, const Character& b) {
    return class_of(a) < class_of(b);
  };
  for (auto run = characters->begin(); run != characters->end();) {
    run = std::find_if(run, characters->end(), is_mark);
    const auto end = std::find_if_not(run, characters->end(), is_mark);
    std::stable_sort(run, end, by_class);
    run = end;
  }
}

// Property White_Space.
bool IsWhiteSpace(CodePoint c);
// "\\w" of regular expressions (Unicode Technical Standard 18, annex C).
bool IsWordCharacter(CodePoint c);

// The classes of characters that BERT's tokenizer distinguishes
// (doc/formats.md 4.2). Together with ICU's Unicode data they are its whole
// knowledge.

// U+0020, tab, line feed, carriage return, and category Zs.
bool IsBertSpace(CodePoint c);
// Returns true for characters that cleaning deletes: U+0000, U+FFFD, categories
// Cc and Cf except for tab, line feed and carriage return.
bool IsBertDeleted(CodePoint c);
// The CJK ideographs that are words of their own.
bool IsBertIdeograph(CodePoint c);
// ASCII 33-47, 58-64, 91-96, 123-126, and categories P*.
bool IsBertPunctuation(CodePoint c);

}  // namespace etc

#endif  // ETC_TASKS_TEXT_UNICODE_H_
