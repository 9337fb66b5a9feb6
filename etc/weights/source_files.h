#ifndef ETC_ETC_WEIGHTS_SOURCE_FILES_H_
#define ETC_ETC_WEIGHTS_SOURCE_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "etc/config.h"

namespace etc {

// The vocabulary beside a model's weights and how text is cut with it.
struct TokenizerFiles {
  // "wordpiece" or "sentencepiece"; empty if there is no vocabulary.
  std::string type;
  // vocab.txt or a SentencePiece model, whatever it is called there, or
  // tokenizer.json; ReadVocabulary has its contents.
  std::string vocabulary;
  // WordPiece: fold to lower case and strip accents.
  bool lower_case = true;
  // SentencePiece: split into words first (model spec 9.4).
  bool split_punctuation = false;
  // Where `type` is empty: why the vocabulary that is there cannot be used;
  // empty if there is none.
  std::string unsupported;
};

// The name of a vocabulary in a checkpoint directory of ours: "vocab.txt" for
// "wordpiece", "tokenizer.model" for "sentencepiece".
std::string VocabularyFileName(const std::string& tokenizer_type);

// The contents of the vocabulary at `path` as a checkpoint directory of ours
// has them: those of the file, of a tokenizer.json (by its suffix ".json") the
// vocab.txt that it stands for.
//   what ReadFile and ReadTokenizerJson say
absl::StatusOr<std::string> ReadVocabulary(const std::string& path);

// `path` is a directory, or a file or the prefix of files in it: what follows
// looks into that directory.

// The path of file `name` there; empty if there is none.
std::string FileBesideWeights(const std::string& path, const std::string& name);

// Finds the vocabulary by the names that official ETC, BERT, HuggingFace and we
// give it; where there is none of them, in tokenizer.json. Options are those of
// `tokenizer_config.json`, if it is there, or else of tokenizer.json; the
// official folder `etc_large_split_punctuation` says the other one by its name.
//   kInvalidArgument  tokenizer_config.json or tokenizer.json cannot be read
absl::StatusOr<TokenizerFiles> FindTokenizer(const std::string& path);

// Puts a vocabulary of these contents into our checkpoint directory, and its
// options into tokenizer_config.json, which HuggingFace reads too. Does nothing
// if `tokenizer.type` is empty.
absl::Status WriteTokenizer(const TokenizerFiles& tokenizer,
                            const std::string& vocabulary,
                            const std::string& directory);

// The encoder that the weights are of.
struct SourceConfig {
  std::string path;  // of the file that says so
  EtcConfig config;
  // See BertConfig. What etc_config.json says is never BERT's.
  bool is_bert = false;
  int64_t first_position = 0;
  std::vector<std::string> warnings;
};

// From etc_config.json, bert_config.json or config.json, the first of them that
// is there.
//   kNotFound         none is
//   kInvalidArgument  it cannot be read
absl::StatusOr<SourceConfig> ReadSourceConfig(const std::string& path);

// The same, but not from etc_config.json: beside BERT's weights that may say
// what is to become of them.
absl::StatusOr<SourceConfig> ReadBertSourceConfig(const std::string& path);

// The configuration of a model that starts from these weights where nobody says
// otherwise: the same, or for BERT and RoBERTa, in whatever form, what they are
// lifted to.
EtcConfig InitialConfig(const SourceConfig& source);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_SOURCE_FILES_H_
