#ifndef ETC_TASKS_HOTPOTQA_ANSWER_SPANS_H_
#define ETC_TASKS_HOTPOTQA_ANSWER_SPANS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// Pieces [first, last] of a text.
struct PieceSpan {
  int64_t first = 0;
  int64_t last = 0;

  friend bool operator==(const PieceSpan&, const PieceSpan&) = default;
};

// Text spelt by SentencePiece pieces: their texts without the first mark, the
// other marks U+2581 as blanks (doc/hotpotqa.md 2.1). `text` is the original;
// it stands in for pieces that the vocabulary does not know.
struct DetokenizedText {
  std::string text;
  // [text.size()]: the piece of each byte.
  std::vector<int64_t> piece_of_byte;
};
DetokenizedText Detokenize(absl::string_view text,
                           const std::vector<Token>& pieces,
                           const Tokenizer& tokenizer);

// Finds one answer in texts (doc/hotpotqa.md 2.2): all occurrences from the
// left that do not overlap, in the same case, within words or not. With
// WordPiece in the text itself; a span has the pieces of all unigrams that the
// occurrence touches, or less where just some of them are the pieces of the
// answer. A tokenizer.json, whose ranges are exact, has instead those of them
// with a byte of the occurrence. With SentencePiece in the detokenized text.
class AnswerFinder {
 public:
  // `tokenizer` must outlive the finder.
  AnswerFinder(std::string answer, TokenizerKind kind,
               const Tokenizer* tokenizer);

  // `pieces` are those of `text`. None for an empty answer.
  std::vector<PieceSpan> Find(absl::string_view text,
                              const std::vector<Token>& pieces) const;

 private:
  std::vector<PieceSpan> FindInUnigrams(absl::string_view text,
                                        const std::vector<Token>& pieces) const;
  std::vector<PieceSpan> FindInDetokenized(
      absl::string_view text, const std::vector<Token>& pieces) const;

  const std::string answer_;
  const TokenizerKind kind_;
  const Tokenizer* const tokenizer_;
  const std::vector<Token> answer_pieces_;
};

}  // namespace etc

#endif  // ETC_TASKS_HOTPOTQA_ANSWER_SPANS_H_
