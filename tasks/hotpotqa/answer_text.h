#ifndef ETC_TASKS_HOTPOTQA_ANSWER_TEXT_H_
#define ETC_TASKS_HOTPOTQA_ANSWER_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "tasks/hotpotqa/example.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// The text of long tokens [first, last] of one title or sentence, as it stands
// in the record: from the first byte of the first piece to the last of the last
// one and of the combining marks behind it, without white space around it.
std::string OriginalAnswerText(const HotpotqaExample& example, PieceSpan span);

// The same as the official program gets it (doc/hotpotqa.md 6.1). WordPiece:
// the unigrams that the span touches, cut to the part that ProjectAnswer finds
// in them; with official sentence numbers, those unigrams by number of another
// sentence behind one that did not fit. SentencePiece: the spelling of the
// pieces, which is not always the original text.
std::string OfficialAnswerText(const HotpotqaExample& example, PieceSpan span,
                               TokenizerKind kind, const Tokenizer& tokenizer);

}  // namespace etc

#endif  // ETC_TASKS_HOTPOTQA_ANSWER_TEXT_H_
