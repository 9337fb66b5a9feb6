#ifndef ETC_TASKS_NQ_SPECIAL_TOKENS_H_
#define ETC_TASKS_NQ_SPECIAL_TOKENS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// Ids of the tokens that stand for no text (nq spec 2.1). In the long input:
struct NqTokens {
  int32_t cls = 101;  // in the global input, too
  int32_t separator = 102;
  int32_t opening_tag = 107;  // any HTML tag
  int32_t closing_tag = 108;
};
// In the global input, the same with every vocabulary:
inline constexpr int32_t kNqGlobalQuestionToken = 35;
inline constexpr int32_t kNqGlobalCandidateToken = 1;
// What the end of the input belongs to.
inline constexpr int32_t kNqGlobalEndToken = 0;

// Type ids of all tokens.
inline constexpr int32_t kNqLongType = 1;
inline constexpr int32_t kNqGlobalType = 0;

// [CLS], [SEP], [unused102] and [unused103] of a WordPiece vocabulary,
// <unused_63>, <unused_2>, <unused_35> and <unused_36> of a SentencePiece
// model, looked up by name.
//   kInvalidArgument  the vocabulary lacks one of them
absl::StatusOr<NqTokens> NqTokensOf(TokenizerKind kind,
                                    const Tokenizer& tokenizer);

}  // namespace etc

#endif  // ETC_TASKS_NQ_SPECIAL_TOKENS_H_
