#ifndef ETC_TASKS_PRETRAIN_SPECIAL_TOKENS_H_
#define ETC_TASKS_PRETRAIN_SPECIAL_TOKENS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// Tokens that stand for no text, which pre-training writes. The global tokens
// of ETC are no pieces: ids 1 and 2 whatever the vocabulary has there
// (doc/model.md 9.4; PackedExampleOptions).
struct SpecialTokens {
  int32_t mask_id = -1;
  // Both or neither, which is -1; BERT needs them.
  int32_t cls_id = -1;
  int32_t separator_id = -1;
  int32_t vocab_size = 0;
};

// Finds the pieces that FindSpecialIds (tasks/text/load_tokenizer.h) finds, so
// that fine-tuning reads what pre-training wrote. `mask_piece`, if not empty,
// is the piece that masks: that of a SentencePiece model whose pieces have
// other names.
//   kInvalidArgument  the vocabulary has no piece that masks; the message names
//                     those that were looked for
absl::StatusOr<SpecialTokens> FindSpecialTokens(
    const Tokenizer& tokenizer, const std::string& mask_piece = "");

// The same for BERT.
//   kInvalidArgument  also if there is no piece to begin an input or to end a
//                     text with
absl::StatusOr<SpecialTokens> FindPairTokens(
    const Tokenizer& tokenizer, const std::string& mask_piece = "");

}  // namespace etc

#endif  // ETC_TASKS_PRETRAIN_SPECIAL_TOKENS_H_
