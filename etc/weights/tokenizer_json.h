#ifndef ETC_ETC_WEIGHTS_TOKENIZER_JSON_H_
#define ETC_ETC_WEIGHTS_TOKENIZER_JSON_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "etc/weights/tokenizer_statements.h"

namespace etc {

// A WordPiece tokenizer as HuggingFace's tokenizer.json describes it.
struct TokenizerJson {
  // The contents of vocab.txt: one piece a line, in the order of their ids.
  std::string vocabulary;
  TokenizerStatements statements;
  // Without a normalizer text is neither folded, nor cleaned, nor split at
  // ideographs, unless another file says so.
  bool has_normalizer = true;
};

// Reads a tokenizer.json of BERT's tokenizer, the only vocabulary that
// transformers 5 writes (doc/formats.md 4.6): `model.vocab`, `added_tokens`,
// and `normalizer` for case and accents.
//   kUnimplemented    another kind of tokenizer: Unigram, BPE, or a WordPiece
//                     that normalises or splits text unlike BERT's, or has a
//                     piece that is empty or has a line break; the message says
//                     what was found and what is supported
//   kInvalidArgument  ids that are not 0, 1, 2, ... once each, and other errors
//                     in the format
// and the errors of ReadJsonFile.
absl::StatusOr<TokenizerJson> ReadTokenizerJson(const std::string& path);

// Checks that a tokenizer.json, or a vocab.json with its merges, has one of the
// models that are read at all; the rest of it is checked when it is loaded.
//   kUnimplemented    another model; the message names it
//   kInvalidArgument  no "model"
// and the errors of ReadTokenizerJsonOrByteLevel.
absl::Status CheckTokenizerJsonModel(const std::string& path);

// Counts the pieces of a tokenizer.json of any kind, or of a vocab.json with
// its merges: one more than the largest id.
//   kInvalidArgument  no "model" with a "vocab", or "added_tokens" that are no
//                     array
// and the errors of ReadTokenizerJsonOrByteLevel.
absl::StatusOr<int64_t> CountTokenizerJsonPieces(const std::string& path);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_TOKENIZER_JSON_H_
