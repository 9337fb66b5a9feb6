#ifndef ETC_TASKS_TEXT_ANSWER_PROJECTION_H_
#define ETC_TASKS_TEXT_ANSWER_PROJECTION_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tasks/text/basic_tokenizer.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// Projects the pieces of an answer back to its text, as the official programs
// do it with WordPiece (doc/squad.md 7, doc/hotpotqa.md 6.1).

// Pieces joined by blanks, those with "##" to the piece before: "writ ##ten by"
// -> "written by". Ids are those of `tokenizer`.
std::string WordsOfPieces(absl::Span<const int32_t> ids,
                          const Tokenizer& tokenizer);

// The part of `raw` whose words (BasicWords) are `pieces`, a result of
// WordsOfPieces, where they occur first; or all of `raw` where the two cannot
// be aligned character by character. `options` are those of the tokenizer.
std::string ProjectAnswer(absl::string_view pieces, absl::string_view raw,
                          const BasicTokenizerOptions& options = {});

}  // namespace etc

#endif  // ETC_TASKS_TEXT_ANSWER_PROJECTION_H_
