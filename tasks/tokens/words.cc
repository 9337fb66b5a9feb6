#include "tasks/tokens/words.h"

#include <unicode/uchar.h>
#include <unicode/uscript.h>

#include <algorithm>
#include <cstddef>

#include "tasks/text/unicode.h"

namespace etc {
namespace {

enum class CharacterKind { kSpace, kMark, kLetter, kAlone };

int32_t ClusterBreakOf(CodePoint c) {
  return u_getIntPropertyValue(c, UCHAR_GRAPHEME_CLUSTER_BREAK);
}

// Returns true for combining marks, and for joiners, emoji modifiers and tags,
// which belong to the character before them as well.
bool IsMark(CodePoint c) {
  const int32_t cluster_break = ClusterBreakOf(c);
  return (U_GET_GC_MASK(c) & U_GC_M_MASK) != 0 ||
         cluster_break == U_GCB_EXTEND || cluster_break == U_GCB_ZWJ;
}

// Returns true for category S without modifiers (Sk), such as the acute accent
// in the place of an apostrophe.
bool IsSymbol(CodePoint c) {
  constexpr uint32_t kSymbols = U_GC_S_MASK & ~U_GC_SK_MASK;
  return (U_GET_GC_MASK(c) & kSymbols) != 0;
}

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
  if (IsMark(c)) {
    return CharacterKind::kMark;
  }
  return IsBertPunctuation(c) || IsSymbol(c) || IsBertIdeograph(c) ||
                 HasNoBlanks(c)
             ? CharacterKind::kAlone
             : CharacterKind::kLetter;
}

// The characters of a text one by one, to find emojis of several: those that
// zero width joiners join (family), and flags, which are two regional
// indicators (rules GB11 to GB13 of Unicode Standard Annex 29).
class EmojiReader {
 public:
  // Returns true if `c` goes on with the emoji that may be before it.
  bool GoesOn(CodePoint c) {
    const int32_t cluster_break = c < 0 ? U_GCB_OTHER : ClusterBreakOf(c);
    const bool is_indicator = cluster_break == U_GCB_REGIONAL_INDICATOR;
    const bool goes_on =
        (is_indicator && is_half_flag_) ||
        (is_joined_ && u_hasBinaryProperty(c, UCHAR_EXTENDED_PICTOGRAPHIC));
    is_half_flag_ = is_indicator && !is_half_flag_;
    is_joined_ = cluster_break == U_GCB_ZWJ;
    return goes_on;
  }

 private:
  bool is_half_flag_ = false;  // behind the first of two regional indicators
  bool is_joined_ = false;     // behind a zero width joiner
};

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
  EmojiReader emojis;
  const auto size = static_cast<int64_t>(text.size());
  for (int64_t at = 0; at < size;) {
    const int64_t begin = at;
    const CodePoint c = NextCodePoint(text, &at);
    const CharacterKind kind = KindOf(c);
    const bool is_rest_of_emoji = emojis.GoesOn(c);
    if (kind == CharacterKind::kSpace) {
      previous = kind;
      continue;
    }
    const bool goes_on = kind == CharacterKind::kMark
                             ? previous != CharacterKind::kSpace
                         : previous == CharacterKind::kAlone
                             ? is_rest_of_emoji
                             : kind == CharacterKind::kLetter &&
                                   previous == CharacterKind::kLetter;
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
