#include "tasks/nq/special_tokens.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"

namespace etc {
namespace {

absl::StatusOr<int32_t> IdOf(absl::string_view piece, absl::string_view use,
                             const Tokenizer& tokenizer) {
  const int32_t id = tokenizer.Id(piece);
  if (id < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the vocabulary should have the piece \"", piece,
        "\", which stands for ", use, " in Natural Questions, but has not"));
  }
  return id;
}

}  // namespace

absl::StatusOr<NqTokens> NqTokensOf(TokenizerKind kind,
                                    const Tokenizer& tokenizer) {
  const bool is_wordpiece = kind == TokenizerKind::kWordPiece;
  NqTokens tokens;
  ETC_ASSIGN_OR_RETURN(tokens.cls,
                       IdOf(is_wordpiece ? "[CLS]" : "<unused_63>",
                            "the beginning of the input", tokenizer));
  ETC_ASSIGN_OR_RETURN(tokens.separator,
                       IdOf(is_wordpiece ? "[SEP]" : "<unused_2>",
                            "the end of the question", tokenizer));
  ETC_ASSIGN_OR_RETURN(tokens.opening_tag,
                       IdOf(is_wordpiece ? "[unused102]" : "<unused_35>",
                            "an opening HTML tag", tokenizer));
  ETC_ASSIGN_OR_RETURN(tokens.closing_tag,
                       IdOf(is_wordpiece ? "[unused103]" : "<unused_36>",
                            "a closing HTML tag", tokenizer));
  return tokens;
}

}  // namespace etc
