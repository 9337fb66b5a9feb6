#ifndef ETC_TASKS_TEXT_PUNKT_WORDS_H_
#define ETC_TASKS_TEXT_PUNKT_WORDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tasks/text/unicode.h"

namespace etc {

// Words as Punkt sees them, and their properties (doc/wikihop.md 2.3).
// Character classes are those of Python's `re`. White space is IsPythonSpace.

// Returns true if a mark (".", "?", "!") in front of this character may end a
// sentence although no white space follows, and a word ends in front of it:
// brackets, quotes (curly ones and guillemets too, as NLTK has them since
// 3.10), ; : * @ ? and !.
bool IsPunktCloser(CodePoint c);

// The words of a text, in order; none has a line end in it. Beside words in the
// usual sense these are "--", "...", ". . .", and single punctuation
// characters, except that full stops stay with the word before them.
std::vector<absl::string_view> PunktWords(absl::string_view text);

// The type of a word: in lower case, or "##number##" if it is a number.
std::string PunktType(absl::string_view word);
inline constexpr absl::string_view kPunktNumber = "##number##";

// "...": two full stops or more.
bool IsPunktEllipsis(absl::string_view word);
// "S.": one letter (or "_", or a number that is no decimal digit) and a full
// stop.
bool IsPunktInitial(absl::string_view word);
// The case of the first character, as str.isupper() and str.islower() see it.
bool BeginsInUpperCase(absl::string_view word);
bool BeginsInLowerCase(absl::string_view word);

}  // namespace etc

#endif  // ETC_TASKS_TEXT_PUNKT_WORDS_H_
