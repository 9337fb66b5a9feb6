#ifndef ETC_ETC_WEIGHTS_TOKENIZER_JSON_H_
#define ETC_ETC_WEIGHTS_TOKENIZER_JSON_H_

#include <string>

#include "absl/status/statusor.h"

namespace etc {

// What HuggingFace's tokenizer.json says of a WordPiece tokenizer.
struct WordPieceFile {
  // The contents of vocab.txt: one piece a line, in the order of their ids.
  std::string vocabulary;
  // Whether text is folded to lower case and accents are stripped.
  bool lower_case = false;
};

// Reads a tokenizer.json of BERT's tokenizer, the only vocabulary that
// transformers 5 writes (formats spec 4.6): `model.vocab` and the special
// pieces of `added_tokens`, and what `normalizer` says of case and accents.
//   kUnimplemented    another kind of tokenizer: Unigram, BPE, or WordPiece
//                     that cleans or splits text as BERT's does not; the
//                     message says what is there and what would be understood
//   kInvalidArgument  ids that are not those from 0 on, once each, and what is
//                     not as the format has it
// and the errors of ReadJsonFile.
absl::StatusOr<WordPieceFile> ReadTokenizerJson(const std::string& path);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_TOKENIZER_JSON_H_
