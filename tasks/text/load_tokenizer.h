#ifndef ETC_TASKS_TEXT_LOAD_TOKENIZER_H_
#define ETC_TASKS_TEXT_LOAD_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tasks/text/tokenizer.h"

namespace etc {

struct TokenizerFiles;

// Loads the tokenizer at `path`: a directory with weights of any origin
// (doc/weights.md), of which the vocabulary is found by its name, or a file of
// a vocabulary, whatever its name: a SentencePiece model if that ends in
// ".model", a tokenizer.json of any kind if it ends in ".json", or a vocab.json
// with its merges.txt beside it, else a vocab.txt. The files beside a vocab.txt
// or a model say how it is used (doc/weights.md, "How a vocabulary is used").
//   kNotFound            there is no such file or directory
//   kInvalidArgument     the directory has no vocabulary, or one of another
//                        tokenizer; a mistake in a file, with its line
//   kUnimplemented       a file beside the vocabulary asks for what is not
//                        supported
//   kResourceExhausted   a vocabulary of more than 256 MiB, or a piece of more
//                        than 4 KiB
//   kFailedPrecondition  SentencePiece's module is missing
absl::StatusOr<std::shared_ptr<const Tokenizer>> LoadTokenizer(
    const std::string& path);

// The same from the description of its files (etc/weights/tokenizer_files.h, an
// internal header).
absl::StatusOr<std::shared_ptr<const Tokenizer>> MakeTokenizer(
    const TokenizerFiles& files);

// Adds to `warnings` if ids of `tokenizer`, which is that of the file
// `vocabulary`, are of other pieces than in the vocabulary beside weights,
// whose rows were trained for those: "2 of 75 ids of words.txt are of other
// pieces than in ...". Does nothing if the weights have no vocabulary that can
// be read.
void WarnOfOtherPieces(const Tokenizer& tokenizer,
                       const std::string& vocabulary,
                       const std::string& weights,
                       std::vector<std::string>* warnings);

// Ids of pieces that stand for no text; -1 where the vocabulary has none.
struct SpecialIds {
  // Ids of a tokenizer.json's post-processor, or else of the first pair that
  // the vocabulary has: [CLS] and [SEP], <unused_63> and <unused_2>, which
  // ETC's SentencePiece model has for them, or <s> and </s>, which
  // SentencePiece gives a model by default. Both or neither.
  int32_t cls = -1;
  int32_t separator = -1;
  // Pieces between two texts, in their order; absent: one `separator`. Of a
  // tokenizer.json that says it, and of byte-level BPE with <s> and </s>.
  std::optional<std::vector<int32_t>> between = std::nullopt;
  // [PAD] or <pad>, [UNK] or <unk>, [MASK] or <mask>.
  int32_t padding = -1;
  int32_t unknown = -1;
  int32_t mask = -1;
};

// The special ids of a tokenizer, by the names of its pieces.
SpecialIds FindSpecialIds(const Tokenizer& tokenizer);

}  // namespace etc

#endif  // ETC_TASKS_TEXT_LOAD_TOKENIZER_H_
