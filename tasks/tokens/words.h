#ifndef ETC_TASKS_TOKENS_WORDS_H_
#define ETC_TASKS_TOKENS_WORDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tasks/text/byte_range.h"
#include "tasks/text/tokenizer.h"
#include "tasks/tokens/record.h"

namespace etc {

// The words of a text that may be labelled: runs of characters between white
// space, where punctuation, symbols (category S but Sk), ideographs and the
// characters of scripts without blanks (kana, Thai, Khmer, Lao, Burmese) are
// words by themselves, with the combining marks behind them. So a span may end
// before a comma. An emoji of several characters, such as a flag, is one word.
// Bytes that are not UTF-8 are letters.
std::vector<ByteRange> FindTokensWords(absl::string_view text);

// A text that is split already: blanks between words, line feeds between
// sentences. Sentences without words are left out.
struct TokensLayout {
  std::string text;
  std::vector<ByteRange> words;
  std::vector<ByteRange> sentences;
};
TokensLayout LayOutWords(absl::Span<const std::vector<std::string>> sentences);

// The byte of each code point of a UTF-8 text, and behind the last one its
// size.
std::vector<int64_t> BytesOfCodePoints(absl::string_view text);

// The code point at a byte, given those bytes.
int64_t CodePointAt(int64_t byte, absl::Span<const int64_t> bytes);

// The smallest part of a text that gets a label of its own: a word, or several
// that have a piece in common. The label is said at its first piece.
struct TokensUnit {
  // Index of its first piece.
  int64_t piece = 0;
  // Words, both included.
  int64_t first_word = 0;
  int64_t last_word = 0;

  bool operator==(const TokensUnit&) const = default;
};

// The units of the pieces of a text, whose words they cover; white space at the
// beginning of a piece does not count. Words without pieces belong to none.
std::vector<TokensUnit> FindTokensUnits(absl::string_view text,
                                        absl::Span<const ByteRange> words,
                                        absl::Span<const Token> pieces);

}  // namespace etc

#endif  // ETC_TASKS_TOKENS_WORDS_H_
