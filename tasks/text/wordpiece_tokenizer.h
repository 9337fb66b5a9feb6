#ifndef ETC_TASKS_TEXT_WORDPIECE_TOKENIZER_H_
#define ETC_TASKS_TEXT_WORDPIECE_TOKENIZER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "etc/weights/wordpiece_options.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// BERT's tokenizer as ETC has it (doc/formats.md 4.1 to 4.4): the words of
// VisitBasicWords, each cut from the left into the longest pieces that the
// vocabulary has, where pieces after the first are spelt with "##" in front; a
// word that cannot be cut becomes one [UNK]. Added tokens are found first, as
// HuggingFace's fast tokenizers find them (AddedTokenSearch): those that are
// not `normalized` in the text as it is, then the others in the rest,
// normalized; without them "[SEP]" in a text is text. The ranges of pieces
// cover their source: the whole word for [UNK], the whole character for each of
// several pieces made from one.
//
// `vocabulary` has the contents of a vocab.txt: one piece a line, ids counted
// from 0; CRLF, a byte order mark and empty lines at the end are accepted.
// `source` names it in messages, with the line:
//   kInvalidArgument    an empty or doubled line, one that is not UTF-8, or no
//                       [PAD], [UNK], [CLS] or [SEP]
//   kResourceExhausted  more than 10,000,000 lines, or a piece longer than
//                       kMostPieceBytes (piece_trie.h)
absl::StatusOr<std::unique_ptr<Tokenizer>> ParseWordPieceTokenizer(
    absl::string_view vocabulary, const std::string& source,
    const WordPieceOptions& options = {});

}  // namespace etc

#endif  // ETC_TASKS_TEXT_WORDPIECE_TOKENIZER_H_
