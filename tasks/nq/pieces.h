#ifndef ETC_TASKS_NQ_PIECES_H_
#define ETC_TASKS_NQ_PIECES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "tasks/nq/raw.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// Ids of the tokens that stand for no text (doc/nq.md 2.1). In the long input:
struct NqTokens {
  int32_t cls = 101;  // in the global input, too
  int32_t separator = 102;
  int32_t opening_tag = 107;  // any HTML tag
  int32_t closing_tag = 108;
};
// In the global input, the same with every vocabulary:
inline constexpr int32_t kNqGlobalQuestionToken = 35;
inline constexpr int32_t kNqGlobalCandidateToken = 1;
// Global token of the end of the input.
inline constexpr int32_t kNqGlobalEndToken = 0;

// [CLS], [SEP], [unused102] and [unused103] of a WordPiece vocabulary,
// <unused_63>, <unused_2>, <unused_35> and <unused_36> of a SentencePiece
// model, looked up by name. Of a tokenizer.json the pieces around a text, and
// for the tags [unused102] and [unused103], [unused1] and [unused2], or
// RoBERTa's madeupword0000 and madeupword0001.
//   kInvalidArgument  the vocabulary lacks one of them
absl::StatusOr<NqTokens> NqTokensOf(TokenizerKind kind,
                                    const Tokenizer& tokenizer);

// The part of a document that models read: the text of its top-level
// candidates, one behind the other in the order of the record (doc/nq.md 2.2).
// n pieces.
struct NqPieces {
  std::vector<int32_t> ids;  // [n]
  // [n]: the candidate that a piece is in, by its number in the record.
  std::vector<int32_t> candidates;
  // [n]: the token of the document that it is a piece of.
  std::vector<int32_t> tokens;

  int64_t size() const { return static_cast<int64_t>(ids.size()); }
};

// An HTML tag is one piece, a word on its own any number. Top-level candidates
// do not overlap in the data; where they do, a token counts once. Token ranges
// must lie within the document.
NqPieces NqPiecesOf(const NqRecord& record, const Tokenizer& tokenizer,
                    const NqTokens& tokens);

// Returns the begins of the windows of `room` pieces over `num_pieces`: 0,
// stride, 2 stride, ... until the end is in one; a single one if all fit
// (doc/nq.md 2.3).
std::vector<int64_t> NqWindowStarts(int64_t num_pieces, int64_t room,
                                    int64_t stride);

}  // namespace etc

#endif  // ETC_TASKS_NQ_PIECES_H_
