#ifndef ETC_ETC_WEIGHTS_TOKENIZER_FILES_H_
#define ETC_ETC_WEIGHTS_TOKENIZER_FILES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "etc/weights/tokenizer_statements.h"
#include "etc/weights/wordpiece_options.h"

namespace etc {

// A vocabulary, and how text is split with it.
struct TokenizerFiles {
  // "wordpiece", "sentencepiece" or "huggingface", which is a tokenizer.json of
  // another kind than BERT's, or with a piece that is no line of a vocab.txt,
  // or a vocab.json with merges.txt beside it (etc/weights/byte_level_files.h);
  // empty if there is no vocabulary.
  std::string type;
  // Path of a vocab.txt, a SentencePiece model or a tokenizer.json, under
  // whichever name, or of a vocab.json; ReadVocabulary reads it.
  std::string vocabulary;
  // lower_case means nothing to other types; DescribeTokenizer sets it false.
  WordPieceOptions wordpiece;
  // SentencePiece: split into words first (doc/model.md 9.4).
  bool split_punctuation = false;
  // The reason, if `type` is empty, why the vocabulary found cannot be used;
  // empty if there is none.
  std::string unsupported;

  // The statements of files that the options above follow.
  TokenizerStatements statements;
  // Message about capitals in the vocabulary where no file says lower_case;
  // empty if there are none, or a file says it.
  std::string capitals;
  // SetCase was called.
  bool case_is_given = false;
};

// Finds the vocabulary in a directory by the names that official ETC, BERT,
// HuggingFace and we use; without any of them, or if they are used in a way
// that is not supported, in tokenizer.json; last, vocab.json with merges.txt.
// `path` is the directory, or a file or the prefix of files in it.
//   errors of DescribeTokenizer, but for kUnimplemented, which becomes
//   `unsupported`, as does one of the last two files without the other
absl::StatusOr<TokenizerFiles> FindTokenizer(const std::string& path);

// The dictionary of fairseq beside weights, a file or a directory: dict.txt, or
// the first of files dict.LANGUAGE.txt, which are equal if the vocabulary is
// joint. Empty if there is none.
//   kInvalidArgument  files dict.LANGUAGE.txt that differ
// and the errors of reading a file or listing the directory.
absl::StatusOr<std::string> DictionaryBeside(const std::string& weights);

// Finds the vocabulary of translation beside weights: tokenizer.model, or what
// DictionaryBeside finds; of both that of `type`.
//   errors of DictionaryBeside
absl::StatusOr<TokenizerFiles> FindTranslationTokenizer(
    const std::string& path, const std::string& type);

// Reads how the vocabulary in the file `vocabulary`, of the given type, is
// used, from all files in its directory that say so: of WordPiece
// tokenizer.json (also as the vocabulary itself), tokenizer_config.json,
// special_tokens_map.json, added_tokens.json, and config.json for the class of
// the tokenizer; of SentencePiece tokenizer_config.json, in which do_lower_case
// true is not supported, or the name of the official folder
// `etc_large_split_punctuation`. A WordPiece vocabulary with capitals, of which
// no file says do_lower_case, is taken for a cased one. Of type "huggingface"
// the file alone says it all, and is read when the tokenizer is made
// (tasks/text/load_tokenizer.h).
//   kUnimplemented    another tokenizer than BERT's, or an option that is not
//                     supported; the message names file, field and value; a
//                     sentencepiece.bpe.model, whose ids are not those of
//                     checkpoints
//   kInvalidArgument  a mistake in one of the files, or two that contradict
//                     each other; a name in ".model" of another type
// and those of ReadFile and ReadJsonFile.
absl::StatusOr<TokenizerFiles> DescribeTokenizer(const std::string& type,
                                                 const std::string& vocabulary);

// Describes the tokenizer that a user names: of a directory FindTokenizer's, or
// the file of a vocabulary itself, which is a SentencePiece model if its name
// ends in ".model", a vocab.json with merges if it ends in "vocab.json", and
// else a tokenizer.json if it ends in ".json".
//   kNotFound         there is no such file or directory
//   kInvalidArgument  the directory has no vocabulary, or one that cannot be
//                     used; the file is a merges.txt
// and the errors of DescribeTokenizer.
absl::StatusOr<TokenizerFiles> DescribeTokenizerAt(const std::string& path);

// Sets lower_case by the word of the user; `source` is how it was given
// ("--cased", "tokenizer.lower_case is true"). Does nothing to tokenizers of
// other types than WordPiece.
//   kInvalidArgument  a file says the opposite
absl::Status SetCase(bool lower_case, const std::string& source,
                     TokenizerFiles* tokenizer);

// Completes a vocabulary that was named instead of the one beside weights,
// `source`, by the statements about a vocabulary of the same type that only the
// files beside the weights make, but for added tokens, whose ids are of the
// other vocabulary. Does nothing to a vocabulary with a tokenizer.json, which
// makes them all. Comes before SetCase.
void TakeUnstated(const TokenizerFiles& source, TokenizerFiles* named);

// TakeUnstated from the vocabulary beside `weights`. Does nothing if `weights`
// is empty or its vocabulary cannot be used.
void TakeUnstatedBeside(const std::string& weights, TokenizerFiles* named);

// The paths of the files beside a vocabulary of the given type that are read,
// because they say how it is used, and are there, be it as links that lead
// nowhere; config.json only if it names the class of the tokenizer.
std::vector<std::string> FilesBesideVocabulary(const std::string& type,
                                               const std::string& vocabulary);

// Describes the treatment of text for people: "lower case, accents kept, 2
// added tokens".
std::string TokenizerText(const TokenizerFiles& tokenizer);

// Warns of pieces with capitals that are never used, or if no file says that
// case is kept.
std::vector<std::string> TokenizerWarnings(const TokenizerFiles& tokenizer);

// The contents of the vocabulary at `path`: as they are, but of WordPiece (also
// of a tokenizer.json: any name that ends in ".json") those of the vocab.txt
// that is equivalent, added tokens among them, and of a vocab.json with its
// merges those of the tokenizer.json that is equivalent.
//   errors of DescribeTokenizer
absl::StatusOr<std::string> ReadVocabulary(const std::string& type,
                                           const std::string& path);

// The lines of a vocab.txt without their ends; line i is that of id i. CRLF, a
// byte order mark and empty lines at the end are accepted.
std::vector<absl::string_view> VocabularyLines(absl::string_view contents);

// The name of a vocabulary in our checkpoint directories: "vocab.txt" for
// "wordpiece", "tokenizer.model" for "sentencepiece", "tokenizer.json" for
// "huggingface", "dict.txt" for "dictionary", which fairseq's models have.
std::string VocabularyFileName(const std::string& tokenizer_type);

// Writes a vocabulary with these contents into our checkpoint directory, and
// its options as tokenizer_config.json, which HuggingFace reads too, of
// WordPiece with the class by which transformers reads it; a tokenizer.json of
// type "huggingface" has them itself. Does nothing if `tokenizer.type` is
// empty.
absl::Status WriteTokenizer(const TokenizerFiles& tokenizer,
                            const std::string& vocabulary,
                            const std::string& directory);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_TOKENIZER_FILES_H_
