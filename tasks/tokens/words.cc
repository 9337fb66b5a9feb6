#include "tasks/tokens/words.h"

#include <unicode/uchar.h>
#include <unicode/uscript.h>

#include <algorithm>
#include <cstddef>

#include "tasks/text/unicode.h"

namespace etc {
namespace {

enum class CharacterKind { kSpace, kMark, kLetter, kAlone };

// Scripts without blanks, whose words are not known here.
bool HasNoBlanks(CodePoint c) {
  if (u_getIntPropertyValue(c, UCHAR_LINE_BREAK) == U_LB_COMPLEX_CONTEXT) {
    return true;
  }
  UErrorCode error = U_ZERO_ERROR;
  const UScriptCode script = uscript_getScript(c, &error);
  return script == USCRIPT_HIRAGANA || script == USCRIPT_KATAKANA;
}

CharacterKind KindOf(CodePoint c) {
  if (c < 0) {
    return CharacterKind::kLetter;
  }
  if (IsBertSpace(c) || u_isUWhiteSpace(c) != 0) {
    return CharacterKind::kSpace;
  }
  if ((U_GET_GC_MASK(c) & U_GC_M_MASK) != 0) {
    return CharacterKind::kMark;
  }
  return IsBertPunctuation(c) || IsBertIdeograph(c) || HasNoBlanks(c)
             ? CharacterKind::kAlone
             : CharacterKind::kLetter;
}

// Index of the word that byte `byte` is in or behind, -1 before the first.
int64_t WordAt(int64_t byte, absl::Span<const ByteRange> words) {
  const auto behind = std::upper_bound(
      words.begin(), words.end(), byte,
      [](int64_t at, const ByteRange& word) { return at < word.begin; });
  return (behind - words.begin()) - 1;
}

}  // namespace

std::vector<ByteRange> FindTokensWords(absl::string_view text) {
  std::vector<ByteRange> words;
  CharacterKind previous = CharacterKind::kSpace;
  const auto size = static_cast<int64_t>(text.size());
  for (int64_t at = 0; at < size;) {
    const int64_t begin = at;
    const CharacterKind kind = KindOf(NextCodePoint(text, &at));
    if (kind == CharacterKind::kSpace) {
      previous = kind;
      continue;
    }
    const bool goes_on =
        previous != CharacterKind::kSpace &&
        (kind == CharacterKind::kMark || (kind == CharacterKind::kLetter &&
                                          previous == CharacterKind::kLetter));
    if (goes_on) {
      words.back().end = at;
      continue;
    }
    words.push_back({.begin = begin, .end = at});
    previous = kind == CharacterKind::kMark ? CharacterKind::kLetter : kind;
  }
  return words;
}

TokensLayout LayOutWords(absl::Span<const std::vector<std::string>> sentences) {
  TokensLayout layout;
  for (const std::vector<std::string>& sentence : sentences) {
    if (sentence.empty()) {
      continue;
    }
    layout.text += layout.text.empty() ? "" : "\n";
    const auto begin = static_cast<int64_t>(layout.text.size());
    const char* blank = "";
    for (const std::string& word : sentence) {
      layout.text += blank;
      const auto at = static_cast<int64_t>(layout.text.size());
      layout.text += word;
      layout.words.push_back(
          {.begin = at, .end = static_cast<int64_t>(layout.text.size())});
      blank = " ";
    }
    layout.sentences.push_back(
        {.begin = begin, .end = static_cast<int64_t>(layout.text.size())});
  }
  return layout;
}

std::vector<int64_t> BytesOfCodePoints(absl::string_view text) {
  std::vector<int64_t> bytes;
  bytes.reserve(text.size() + 1);
  for (int64_t at = 0; at < static_cast<int64_t>(text.size());) {
    bytes.push_back(at);
    NextCodePoint(text, &at);
  }
  bytes.push_back(static_cast<int64_t>(text.size()));
  return bytes;
}

int64_t CodePointAt(int64_t byte, absl::Span<const int64_t> bytes) {
  return std::lower_bound(bytes.begin(), bytes.end(), byte) - bytes.begin();
}

std::vector<TokensUnit> FindTokensUnits(absl::string_view text,
                                        absl::Span<const ByteRange> words,
                                        absl::Span<const Token> pieces) {
  std::vector<TokensUnit> units;
  for (size_t i = 0; i < pieces.size(); ++i) {
    int64_t begin = pieces[i].begin;
    for (int64_t at = begin;
         at < pieces[i].end &&
         KindOf(NextCodePoint(text, &at)) == CharacterKind::kSpace;) {
      begin = at;
    }
    if (begin >= pieces[i].end) {
      continue;
    }
    const int64_t first = WordAt(begin, words);
    const int64_t last = WordAt(pieces[i].end - 1, words);
    if (first < 0) {
      continue;
    }
    if (!units.empty() && first <= units.back().last_word) {
      units.back().last_word = std::max(units.back().last_word, last);
    } else {
      units.push_back({.piece = static_cast<int64_t>(i),
                       .first_word = first,
                       .last_word = last});
    }
  }
  return units;
}

}  // namespace etc
