#ifndef ETC_TASKS_SQUAD_DOCUMENT_H_
#define ETC_TASKS_SQUAD_DOCUMENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tasks/squad/record.h"
#include "tasks/text/byte_range.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// The words of a context.
struct SquadWords {
  // SplitUnigrams of the context.
  std::vector<ByteRange> words;
  // Maps each code point of the context to its word; white space to the word
  // before it, -1 at the very beginning.
  std::vector<int32_t> word_of;
};
SquadWords FindSquadWords(absl::string_view context);

// Words or pieces first to last, both included.
struct SquadSpan {
  int64_t first = 0;
  int64_t last = -1;

  friend bool operator==(const SquadSpan&, const SquadSpan&) = default;
};

// Words [first, last] of `context` with single blanks between them.
std::string JoinSquadWords(absl::string_view context,
                           const std::vector<ByteRange>& words, SquadSpan span);

// The words that an answer touches; nothing if they do not have its text, or it
// does not lie within the context (doc/squad.md 2).
std::optional<SquadSpan> FindAnswerWords(absl::string_view context,
                                         const SquadWords& words,
                                         const SquadAnswer& answer);

// Returns true if an answer stands at its offset and holds white space that is
// part of words, as U+00A0: FindAnswerWords has nothing for it.
bool HoldsSpaceOfWords(absl::string_view context, const SquadAnswer& answer);

struct SquadPiece {
  int32_t id = 0;
  // The word of the context that it is a piece of.
  int32_t word = 0;
  // Bytes of the context.
  ByteRange bytes;
};

// The pieces of each word as behind a blank (EncodeBehindBlank), in order.
std::vector<SquadPiece> SplitSquadWords(absl::string_view context,
                                        const std::vector<ByteRange>& words,
                                        const Tokenizer& tokenizer);

// The pieces of an answer, given the words that it touches: those of its text
// alone where they occur, or else those of whole words (doc/squad.md 3). Empty
// if the words have no pieces.
SquadSpan FindAnswerPieces(const std::vector<SquadPiece>& pieces,
                           SquadSpan words, absl::string_view answer,
                           const Tokenizer& tokenizer);

// The same with a tokenizer whose ranges are exact: the pieces with a byte of
// the answer, or those of the whole words if none has one.
SquadSpan PiecesAtAnswer(absl::string_view context, const SquadWords& words,
                         SquadSpan answer_words, const SquadAnswer& answer,
                         const std::vector<SquadPiece>& pieces);

// A part of a document: `length` pieces from `begin` on.
struct SquadPart {
  int64_t begin = 0;
  int64_t length = 0;
};

// The windows over `num_pieces` pieces, of at most `room` each, `stride` apart;
// none over nothing. All three positive but for num_pieces.
std::vector<SquadPart> SquadWindows(int64_t num_pieces, int64_t room,
                                    int64_t stride);

// Returns for each piece the window in which it has most context (doc/squad.md
// 3):
//
//   min(pieces to its left, pieces to its right) + 0.01 * window length
//
// of equals the first.
std::vector<int32_t> WindowsOfMostContext(const std::vector<SquadPart>& windows,
                                          int64_t num_pieces);

}  // namespace etc

#endif  // ETC_TASKS_SQUAD_DOCUMENT_H_
