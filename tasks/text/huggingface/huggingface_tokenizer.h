#ifndef ETC_TASKS_TEXT_HUGGINGFACE_HUGGINGFACE_TOKENIZER_H_
#define ETC_TASKS_TEXT_HUGGINGFACE_HUGGINGFACE_TOKENIZER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// The tokenizer that a tokenizer.json of HuggingFace describes
// (doc/weights.md, "Any tokenizer.json"): BPE, byte-level or not, WordPiece,
// Unigram or WordLevel behind its normalizers, pre-tokenizers and added tokens.
// Pieces are those of the Python package `tokenizers` without special tokens.
// The post-processor says which special pieces begin and end a text (Marks).
// Truncation, padding and decoder are ignored: they are the task's business.
//
// The range of a piece has no white space at its ends, unless it is nothing
// else; several pieces made from one character have the whole character; a
// piece that stands for nothing in the text has an empty range. Normalized
// characters stand for those that they were made of.
//
//   kUnimplemented      a part that is not supported; the message names it
//   kInvalidArgument    no JSON, wrong types, ids that are doubled or out of
//                       range, merges of unknown pieces; file and field
//   kResourceExhausted  more than 256 MiB, or a piece to search for of more
//                       than 4 KiB (kMostPieceBytes)
// and those of ReadFile; of a path that ends in "vocab.json", which is read
// with its merges, those of etc/weights/byte_level_files.h (internal).
absl::StatusOr<std::unique_ptr<Tokenizer>> LoadHuggingFaceTokenizer(
    const std::string& path);

// The same from the contents of such a file; `source` names it in messages.
absl::StatusOr<std::unique_ptr<Tokenizer>> ParseHuggingFaceTokenizer(
    absl::string_view contents, const std::string& source);

}  // namespace etc

#endif  // ETC_TASKS_TEXT_HUGGINGFACE_HUGGINGFACE_TOKENIZER_H_
