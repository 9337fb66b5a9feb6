#ifndef ETC_TASKS_TOKENS_EXAMPLE_H_
#define ETC_TASKS_TOKENS_EXAMPLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tasks/data/example.h"
#include "tasks/text/byte_range.h"
#include "tasks/tokens/record.h"
#include "tasks/tokens/words.h"

namespace etc {

// A document as the model reads it (tasks/inputs/text_input.h): ETC gets a
// global token for each sentence as long as there is room. Its end is cut off
// if it is too long.
struct TokensExample : Example {
  std::string text;
  std::vector<ByteRange> words;
  // Number of words of each sentence of a text that is split already; empty for
  // others.
  std::vector<int64_t> sentence_sizes;
  // Units whose first piece is in the input.
  std::vector<TokensUnit> units;
  // The class of each unit; empty if it has no answer, or the labels are not
  // known yet.
  std::vector<int64_t> classes;
  // All spans, of the part that is cut off too.
  std::vector<TokensSpan> gold;
  int64_t dropped_pieces = 0;
  // The code point at which the first of them begins, if there is one.
  std::optional<int64_t> cut_at;
  // Sentences in the input without a global token of their own.
  int64_t dropped_sentences = 0;

  // Bytes of a unit: from its first word to its last.
  ByteRange BytesOf(const TokensUnit& unit) const {
    return {words[static_cast<size_t>(unit.first_word)].begin,
            words[static_cast<size_t>(unit.last_word)].end};
  }

  // Position of a unit's first piece among the tokens of the text.
  static int64_t PositionOf(const TokensUnit& unit) { return 1 + unit.piece; }

  int64_t TaskBytes() const override;
};

}  // namespace etc

#endif  // ETC_TASKS_TOKENS_EXAMPLE_H_
