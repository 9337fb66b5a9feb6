#ifndef ETC_ETC_WEIGHTS_TOKENIZER_FILES_H_
#define ETC_ETC_WEIGHTS_TOKENIZER_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace etc {

// A vocabulary in the directory of a model's weights, and how text is split
// with it.
struct TokenizerFiles {
  // "wordpiece" or "sentencepiece"; empty if there is no vocabulary.
  std::string type;
  // Path of a vocab.txt, a SentencePiece model or a tokenizer.json, under
  // whichever name; ReadVocabulary reads it.
  std::string vocabulary;
  // WordPiece: fold to lower case and strip accents.
  bool lower_case = true;
  // SentencePiece: split into words first (doc/model.md 9.4).
  bool split_punctuation = false;
  // If `type` is empty, why the vocabulary found cannot be used; empty if there
  // is none.
  std::string unsupported;
};

// Finds the vocabulary by the names that official ETC, BERT, HuggingFace and we
// use; without any of them, in tokenizer.json. The options are those in
// tokenizer_config.json, or without it those in tokenizer.json;
// split_punctuation is also true in the official folder
// `etc_large_split_punctuation`. `path` is the directory, or a file or the
// prefix of files in it.
//   kInvalidArgument  tokenizer_config.json or tokenizer.json is invalid
absl::StatusOr<TokenizerFiles> FindTokenizer(const std::string& path);

// The contents of the vocabulary at `path`: of a tokenizer.json (any name that
// ends in ".json") as those of the vocab.txt that is equivalent.
//   what ReadFile and ReadTokenizerJson say
absl::StatusOr<std::string> ReadVocabulary(const std::string& path);

// The name of a vocabulary in our checkpoint directories: "vocab.txt" for
// "wordpiece", "tokenizer.model" for "sentencepiece".
std::string VocabularyFileName(const std::string& tokenizer_type);

// Writes a vocabulary with these contents into our checkpoint directory, and
// its options as tokenizer_config.json, which HuggingFace reads too. Does
// nothing if `tokenizer.type` is empty.
absl::Status WriteTokenizer(const TokenizerFiles& tokenizer,
                            const std::string& vocabulary,
                            const std::string& directory);

// A WordPiece tokenizer as HuggingFace's tokenizer.json describes it.
struct WordPieceFile {
  // The contents of vocab.txt: one piece a line, in the order of their ids.
  std::string vocabulary;
  // Whether text is folded to lower case and accents are stripped.
  bool lower_case = false;
};

// Reads a tokenizer.json of BERT's tokenizer, the only vocabulary that
// transformers 5 writes (doc/formats.md 4.6): `model.vocab`, the special pieces
// of `added_tokens`, and `normalizer` for case and accents.
//   kUnimplemented    another kind of tokenizer: Unigram, BPE, or a WordPiece
//                     that normalises or splits text unlike BERT's; the message
//                     says what was found and what is supported
//   kInvalidArgument  ids that are not 0, 1, 2, ... once each, and other errors
//                     in the format
// and the errors of ReadJsonFile.
absl::StatusOr<WordPieceFile> ReadTokenizerJson(const std::string& path);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_TOKENIZER_FILES_H_
