#ifndef ETC_TASKS_PRETRAIN_CORPUS_CORPUS_TOKENIZER_H_
#define ETC_TASKS_PRETRAIN_CORPUS_CORPUS_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tasks/config/config.h"
#include "tasks/pretrain/corpus/token_store_format.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// A tokenizer with the properties that pre-training needs.
struct CorpusTokenizer {
  std::shared_ptr<const Tokenizer> tokenizer;
  // Settings of the store; `sentences` is empty.
  TokenStoreSettings settings;
  // [vocab_size]: 1 for a piece that continues a word: a WordPiece with "##", a
  // SentencePiece that does not begin with U+2581 (doc/pretraining.md 8).
  std::vector<uint8_t> is_continuation;
};

// Returns the settings of a store for a tokenizer that was loaded by `config`;
// also to compare a run with the settings of a store (CheckSameTokenizer).
//
//   mask_piece  the piece that stands for a masked token; empty: "[MASK]"
//               or "<mask>"
//   kInvalidArgument  the vocabulary does not have it
// and the errors of ReadVocabulary (etc/weights/tokenizer_files.h).
absl::StatusOr<CorpusTokenizer> MakeCorpusTokenizer(
    const TokenizerConfig& config, std::shared_ptr<const Tokenizer> tokenizer,
    const std::string& mask_piece = "");

}  // namespace etc

#endif  // ETC_TASKS_PRETRAIN_CORPUS_CORPUS_TOKENIZER_H_
