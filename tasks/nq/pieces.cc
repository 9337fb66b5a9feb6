#include "tasks/nq/pieces.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "tasks/inputs/text_input.h"

namespace etc {
namespace {

void AddPiece(int32_t id, int32_t candidate, int64_t token, NqPieces* pieces) {
  pieces->ids.push_back(id);
  pieces->candidates.push_back(candidate);
  pieces->tokens.push_back(static_cast<int32_t>(token));
}

absl::StatusOr<int32_t> IdOf(absl::string_view piece, absl::string_view use,
                             const Tokenizer& tokenizer) {
  const int32_t id = tokenizer.Id(piece);
  if (id < 0) {
    return InvalidArgument("the vocabulary should have the piece \"", piece,
                           "\", which stands for ", use,
                           " in Natural Questions, but has not");
  }
  return id;
}

// The tokens of a tokenizer.json: the first pair of pieces without a use stands
// for tags.
absl::StatusOr<NqTokens> TokensByMarks(const Tokenizer& tokenizer) {
  const TextMarkIds marks = tokenizer.marks();
  NqTokens tokens;
  tokens.cls = marks.first;
  tokens.separator = marks.last;
  for (const auto& [opening, closing] :
       {std::pair("[unused102]", "[unused103]"),
        std::pair("[unused1]", "[unused2]"),
        std::pair("madeupword0000", "madeupword0001")}) {
    tokens.opening_tag = tokenizer.Id(opening);
    tokens.closing_tag = tokenizer.Id(closing);
    if (marks.first >= 0 && marks.last >= 0 && tokens.opening_tag >= 0 &&
        tokens.closing_tag >= 0) {
      return tokens;
    }
  }
  return InvalidArgument(
      "for Natural Questions a tokenizer.json should name the pieces around a "
      "text, and have \"[unused102]\" and \"[unused103]\", \"[unused1]\" and "
      "\"[unused2]\", or \"madeupword0000\" and \"madeupword0001\", which "
      "stand "
      "for HTML tags, but has not");
}

}  // namespace

absl::StatusOr<NqTokens> NqTokensOf(TokenizerKind kind,
                                    const Tokenizer& tokenizer) {
  if (kind == TokenizerKind::kHuggingFace) {
    return TokensByMarks(tokenizer);
  }
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

NqPieces NqPiecesOf(const NqRecord& record, const Tokenizer& tokenizer,
                    const NqTokens& tokens) {
  NqPieces pieces;
  std::vector<bool> is_taken(record.tokens.size());
  int32_t number = -1;
  for (const NqCandidate& candidate : record.candidates) {
    ++number;
    if (!candidate.top_level) {
      continue;
    }
    for (int64_t p = candidate.span.start_token; p < candidate.span.end_token;
         ++p) {
      const auto at = static_cast<size_t>(p);
      if (is_taken[at]) {
        continue;
      }
      is_taken[at] = true;
      const NqToken& token = record.tokens[at];
      if (token.is_html) {
        AddPiece(absl::StartsWith(token.text, "</") ? tokens.closing_tag
                                                    : tokens.opening_tag,
                 number, p, &pieces);
        continue;
      }
      for (const Token& piece : EncodeBehindBlank(token.text, tokenizer)) {
        AddPiece(piece.id, number, p, &pieces);
      }
    }
  }
  return pieces;
}

std::vector<int64_t> NqWindowStarts(int64_t num_pieces, int64_t room,
                                    int64_t stride) {
  const int64_t excess = std::max<int64_t>(num_pieces - room, 0);
  std::vector<int64_t> starts;
  for (int64_t start = 0; start < excess + stride; start += stride) {
    starts.push_back(start);
  }
  return starts;
}

}  // namespace etc
