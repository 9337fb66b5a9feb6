#include "tasks/nq/pieces.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/match.h"

namespace etc {
namespace {

void AddPiece(int32_t id, int32_t candidate, int64_t token, NqPieces* pieces) {
  pieces->ids.push_back(id);
  pieces->candidates.push_back(candidate);
  pieces->tokens.push_back(static_cast<int32_t>(token));
}

}  // namespace

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
      for (const Token& piece : tokenizer.Encode(token.text)) {
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
