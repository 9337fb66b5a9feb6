#include "tasks/text/punkt_words.h"

#include <unicode/uchar.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"
#include "tasks/text/text_folding.h"

namespace etc {
namespace {

// No character: the end of a line.
constexpr CodePoint kEnd = -2;

// The character at byte `at`, which may be the end.
CodePoint At(absl::string_view line, int64_t at) {
  return at < static_cast<int64_t>(line.size()) ? NextCodePoint(line, &at)
                                                : kEnd;
}

// Byte behind the character at byte `at`.
int64_t Behind(absl::string_view line, int64_t at) {
  NextCodePoint(line, &at);
  return at;
}

bool IsDigit(CodePoint c) {
  return c < 0x80 ? c >= '0' && c <= '9'
                  : u_charType(c) == U_DECIMAL_DIGIT_NUMBER;
}

// Characters that are words of their own unless they begin a dash.
bool IsWordByItself(CodePoint c) {
  switch (c) {
    case '(':
    case '"':
    case '`':
    case '{':
    case '[':
    case ':':
    case ';':
    case '&':
    case '#':
    case '*':
    case '@':
    case ')':
    case '}':
    case ']':
    case '-':
    case ',':
      return true;
    default:
      return false;
  }
}

// End of the run of `c` that begins at byte `at`, if it has two or more.
int64_t EndOfRun(absl::string_view line, int64_t at, char c) {
  int64_t end = at;
  while (At(line, end) == c) {
    ++end;
  }
  return end - at >= 2 ? end : at;
}

// End of ". . ." at byte `at`: three full stops or more with one white space
// character between any two.
int64_t EndOfSpacedStops(absl::string_view line, int64_t at) {
  int64_t end = at;
  int64_t stops = 0;
  for (int64_t next = at; At(line, next) == '.'; ++stops) {
    end = next + 1;
    if (!IsPythonSpace(At(line, end))) {
      ++stops;
      break;
    }
    next = Behind(line, end);
  }
  return stops >= 3 ? end : at;
}

// End of a dash, an ellipsis, or an ellipsis with white space in it at byte
// `at`; `at` if there is none.
int64_t EndOfRepeatedMark(absl::string_view line, int64_t at) {
  const CodePoint c = At(line, at);
  if (c == '-') {
    return EndOfRun(line, at, '-');
  }
  if (c != '.') {
    return at;
  }
  const int64_t end = EndOfRun(line, at, '.');
  return end > at ? end : EndOfSpacedStops(line, at);
}

// EndOfRepeatedMark without a search for the end.
bool HasRepeatedMark(absl::string_view line, int64_t at) {
  const CodePoint c = At(line, at);
  if (c != '-' && c != '.') {
    return false;
  }
  if (At(line, at + 1) == c) {
    return true;
  }
  for (int i = 0; i < 2; ++i) {
    if (At(line, at) != '.' || !IsPythonSpace(At(line, at + 1))) {
      return false;
    }
    at = Behind(line, at + 1);
  }
  return At(line, at) == '.';
}

// Returns true if a word ends in front of byte `at` for another reason than a
// comma.
bool EndsBeforeNonComma(absl::string_view line, int64_t at) {
  const CodePoint c = At(line, at);
  return c == kEnd || IsPythonSpace(c) || IsPunktCloser(c) ||
         HasRepeatedMark(line, at);
}

bool EndsBefore(absl::string_view line, int64_t at) {
  return EndsBeforeNonComma(line, at) ||
         (At(line, at) == ',' && EndsBeforeNonComma(line, at + 1));
}

// End of the word that begins at byte `at`, which is no white space.
int64_t EndOfWord(absl::string_view line, int64_t at) {
  const int64_t end = EndOfRepeatedMark(line, at);
  if (end > at) {
    return end;
  }
  const bool is_alone = IsWordByItself(At(line, at));
  at = Behind(line, at);
  while (!is_alone && !EndsBefore(line, at)) {
    at = Behind(line, at);
  }
  return at;
}

void AddWords(absl::string_view line, std::vector<absl::string_view>* words) {
  if (IsBlank(line)) {
    return;
  }
  const auto size = static_cast<int64_t>(line.size());
  for (int64_t at = 0; at < size;) {
    if (IsPythonSpace(At(line, at))) {
      at = Behind(line, at);
      continue;
    }
    const int64_t end = EndOfWord(line, at);
    words->push_back(
        line.substr(static_cast<size_t>(at), static_cast<size_t>(end - at)));
    at = end;
  }
}

// "-1,234.5": whether all of a text, in lower case, is a number.
bool IsNumber(absl::string_view text) {
  absl::ConsumePrefix(&text, "-");
  if (!absl::ConsumePrefix(&text, ".")) {
    absl::ConsumePrefix(&text, ",");
  }
  if (!IsDigit(At(text, 0))) {
    return false;
  }
  for (int64_t at = 0; at < static_cast<int64_t>(text.size());) {
    const CodePoint c = NextCodePoint(text, &at);
    if (!IsDigit(c) && c != ',' && c != '.' && c != '-') {
      return false;
    }
  }
  return true;
}

}  // namespace

bool IsPunktCloser(CodePoint c) {
  switch (c) {
    case ')':
    case '"':
    case ';':
    case '}':
    case ']':
    case '*':
    case ':':
    case '@':
    case '\'':
    case '(':
    case '{':
    case '[':
    case '?':
    case '!':
    case 0x2018:  // single curly quotes
    case 0x2019:
    case 0x201C:  // double ones
    case 0x201D:
    case 0xAB:  // guillemets
    case 0xBB:
      return true;
    default:
      return false;
  }
}

std::vector<absl::string_view> PunktWords(absl::string_view text) {
  std::vector<absl::string_view> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    AddWords(text.substr(0, end), &words);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

std::string PunktType(absl::string_view word) {
  const bool is_ascii = std::all_of(word.begin(), word.end(),
                                    [](char byte) { return byte >= 0; });
  std::string type = is_ascii ? absl::AsciiStrToLower(word) : LowerCase(word);
  return IsNumber(type) ? std::string(kPunktNumber) : type;
}

bool IsPunktEllipsis(absl::string_view word) {
  return word.size() >= 2 &&
         word.find_first_not_of('.') == absl::string_view::npos;
}

bool IsPunktInitial(absl::string_view word) {
  if (!absl::ConsumeSuffix(&word, ".") || word.empty()) {
    return false;
  }
  const CodePoint c = At(word, 0);
  constexpr uint32_t kLettersAndNumbers =
      U_GC_L_MASK | U_GC_NL_MASK | U_GC_NO_MASK;
  return c >= 0 && Behind(word, 0) == static_cast<int64_t>(word.size()) &&
         (c == '_' || (U_GET_GC_MASK(c) & kLettersAndNumbers) != 0);
}

bool BeginsInUpperCase(absl::string_view word) {
  const CodePoint c = At(word, 0);
  return c >= 0 && u_isUUppercase(c) != 0;
}

bool BeginsInLowerCase(absl::string_view word) {
  const CodePoint c = At(word, 0);
  return c >= 0 && u_isULowercase(c) != 0;
}

}  // namespace etc
