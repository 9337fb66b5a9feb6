#ifndef ETC_TASKS_NQ_PIECES_H_
#define ETC_TASKS_NQ_PIECES_H_

#include <cstdint>
#include <vector>

#include "tasks/nq/raw.h"
#include "tasks/nq/special_tokens.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// The part of a document that models read: what its top-level candidates hold,
// one behind the other in the order of the record (nq spec 2.2). n pieces.
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

// Where the windows of `room` pieces over `num_pieces` begin: 0, stride, 2
// stride, ... until the end is in one; a single one if all fit (nq spec 2.3).
std::vector<int64_t> NqWindowStarts(int64_t num_pieces, int64_t room,
                                    int64_t stride);

}  // namespace etc

#endif  // ETC_TASKS_NQ_PIECES_H_
