#ifndef ETC_TASKS_TEXT_SENTENCEPIECE_TOKENIZER_H_
#define ETC_TASKS_TEXT_SENTENCEPIECE_TOKENIZER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "tasks/text/tokenizer.h"

namespace etc {

struct SentencePieceOptions {
  // Splits the text into the words of VisitBasicWords first, keeping case, and
  // encodes each on its own: the "split punctuation" checkpoints of ETC were
  // trained so (doc/model.md 9.4).
  bool split_punctuation = false;

  // File of the module that holds SentencePiece; empty: where build and
  // installation put it.
  std::string module_path;
};

// SentencePiece with ETC's digit-comma rule (doc/model.md 9.4): a piece such as
// "12," is taken apart into the pieces of "12" and ",". Where it stands within
// a word, encoding "12" anew puts a mark U+2581 in front, which stays as in the
// official code, whose checkpoints were trained so (doc/formats.md 4.7). `path`
// is a .model file; its own normalizer is all the cleaning there is.
//
// A piece's range has the white space that its U+2581 stands for; it is empty
// for a mark that nothing in the text stands for. Pieces made by the
// digit-comma rule have their own bytes, or all of the original piece's where
// the normalizer changed the text in it.
//
//   kInvalidArgument     the file is no SentencePiece model, or a broken one
//                        (LoadSentencePieceModel)
//   kResourceExhausted   it has more than 256 MiB, or a piece longer than
//                        kMostPieceBytes
//   kFailedPrecondition  see LoadSentencePieceModel
// and those of ReadFile.
absl::StatusOr<std::unique_ptr<Tokenizer>> LoadSentencePieceTokenizer(
    const std::string& path, const SentencePieceOptions& options = {});

}  // namespace etc

#endif  // ETC_TASKS_TEXT_SENTENCEPIECE_TOKENIZER_H_
