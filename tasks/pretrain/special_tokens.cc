#include "tasks/pretrain/special_tokens.h"

#include <vector>

#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace etc {
namespace {

using PieceNames = std::vector<std::string>;

// The id of the first of these pieces that the vocabulary has, or -1.
int32_t FindPiece(const Tokenizer& tokenizer, const PieceNames& names) {
  for (const std::string& name : names) {
    if (const int32_t id = tokenizer.Id(name); id >= 0) {
      return id;
    }
  }
  return -1;
}

absl::Status NoPiece(const PieceNames& names, const std::string& purpose) {
  return InvalidArgument("the vocabulary should have a piece ",
                         absl::StrJoin(names, " or "), " ", purpose,
                         ", but has none");
}

const PieceNames& ClassNames() {
  static const auto* const names = new PieceNames{"[CLS]", "<s>"};
  return *names;
}

const PieceNames& SeparatorNames() {
  static const auto* const names = new PieceNames{"[SEP]", "</s>"};
  return *names;
}

}  // namespace

absl::StatusOr<SpecialTokens> FindSpecialTokens(const Tokenizer& tokenizer,
                                                const std::string& mask_piece) {
  const PieceNames mask_names = mask_piece.empty()
                                    ? PieceNames{"[MASK]", "<mask>"}
                                    : PieceNames{mask_piece};
  const SpecialTokens tokens{
      .mask_id = FindPiece(tokenizer, mask_names),
      .cls_id = FindPiece(tokenizer, ClassNames()),
      .separator_id = FindPiece(tokenizer, SeparatorNames()),
      .vocab_size = static_cast<int32_t>(tokenizer.vocab_size())};
  if (tokens.mask_id < 0) {
    return NoPiece(mask_names, "to put in the place of masked tokens");
  }
  return tokens;
}

absl::StatusOr<SpecialTokens> FindPairTokens(const Tokenizer& tokenizer,
                                             const std::string& mask_piece) {
  ETC_ASSIGN_OR_RETURN(const SpecialTokens tokens,
                       FindSpecialTokens(tokenizer, mask_piece));
  if (tokens.cls_id < 0) {
    return NoPiece(ClassNames(), "to begin an input with");
  }
  if (tokens.separator_id < 0) {
    return NoPiece(SeparatorNames(), "to end a text with");
  }
  return tokens;
}

}  // namespace etc
