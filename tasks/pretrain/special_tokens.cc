#include "tasks/pretrain/special_tokens.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "tasks/text/load_tokenizer.h"

namespace etc {
namespace {

absl::Status NoPiece(absl::string_view names, absl::string_view purpose) {
  return InvalidArgument("the vocabulary should have ", names, " ", purpose,
                         ", but has none");
}

}  // namespace

absl::StatusOr<SpecialTokens> FindSpecialTokens(const Tokenizer& tokenizer,
                                                const std::string& mask_piece) {
  const SpecialIds ids = FindSpecialIds(tokenizer);
  const SpecialTokens tokens{
      .mask_id = mask_piece.empty() ? ids.mask : tokenizer.Id(mask_piece),
      .cls_id = ids.cls,
      .separator_id = ids.separator,
      .vocab_size = static_cast<int32_t>(tokenizer.vocab_size())};
  if (tokens.mask_id < 0) {
    return NoPiece(
        absl::StrCat("a piece ",
                     mask_piece.empty() ? "[MASK] or <mask>" : mask_piece),
        "to put in the place of masked tokens (pretrain.mask_piece names "
        "another)");
  }
  return tokens;
}

absl::StatusOr<SpecialTokens> FindPairTokens(const Tokenizer& tokenizer,
                                             const std::string& mask_piece) {
  ETC_ASSIGN_OR_RETURN(const SpecialTokens tokens,
                       FindSpecialTokens(tokenizer, mask_piece));
  if (tokens.cls_id < 0) {
    return NoPiece("pieces [CLS] and [SEP], or <s> and </s>,",
                   "to begin an input and to end a text with");
  }
  return tokens;
}

}  // namespace etc
