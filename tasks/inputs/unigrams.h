#ifndef ETC_TASKS_INPUTS_UNIGRAMS_H_
#define ETC_TASKS_INPUTS_UNIGRAMS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "tasks/text/byte_range.h"
#include "tasks/text/tokenizer.h"
#include "tasks/text/unicode.h"

namespace etc {

// Words of a text, and an answer among its pieces, as the official programs of
// BERT for SQuAD and of HotpotQA, made from the former, find them.

// Returns true for blank, tab, CR, LF and U+202F, which divide a text; other
// white space, as a no-break space, divides nothing.
bool IsUnigramSpace(CodePoint c);

// The parts of a text between these characters: the words of SQuAD
// (doc/squad.md 2), the "unigrams" of HotpotQA (doc/hotpotqa.md 2.1).
std::vector<ByteRange> SplitUnigrams(absl::string_view text);

// The first of the pieces `span.first` to `span.last` that are those of an
// answer, as BERT's _improve_answer_span finds them; `span` if they do not
// occur in it.
template <typename Span, typename Piece>
Span FirstOccurrence(const std::vector<Token>& answer, Span span,
                     const std::vector<Piece>& pieces) {
  const auto end = pieces.begin() + span.last + 1;
  const auto found =
      std::search(pieces.begin() + span.first, end, answer.begin(),
                  answer.end(), [](const Piece& piece, const Token& token) {
                    return piece.id == token.id;
                  });
  if (answer.empty() || found == end) {
    return span;
  }
  const int64_t first = found - pieces.begin();
  return {.first = first,
          .last = first + static_cast<int64_t>(answer.size()) - 1};
}

}  // namespace etc

#endif  // ETC_TASKS_INPUTS_UNIGRAMS_H_
