#include "tasks/hotpotqa/answer_text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "tasks/inputs/unigrams.h"
#include "tasks/text/answer_projection.h"
#include "tasks/text/text_folding.h"
#include "tasks/text/unicode.h"

namespace etc {
namespace {

// The global token of the sentence or title that a span lies in.
int32_t OwnerOf(const HotpotqaExample& example, PieceSpan span) {
  return example.pattern.sentence[static_cast<size_t>(span.first)];
}

std::string JoinedPieces(const HotpotqaExample& example, PieceSpan span,
                         const Tokenizer& tokenizer) {
  return WordsOfPieces(
      absl::MakeConstSpan(example.long_token_ids)
          .subspan(static_cast<size_t>(span.first),
                   static_cast<size_t>(span.last - span.first) + 1),
      tokenizer);
}

// Returns the unigrams that a span touches, joined by blanks: their numbers are
// those in its own text, the unigrams those of the official one, which may have
// fewer.
std::string TouchedUnigrams(const HotpotqaExample& example, PieceSpan span) {
  const int32_t owner = OwnerOf(example, span);
  const int64_t begin =
      example.long_bytes[static_cast<size_t>(span.first)].begin;
  const int64_t end = example.long_bytes[static_cast<size_t>(span.last)].end;
  const std::vector<ByteRange> own = SplitUnigrams(example.TextOf(owner));
  const absl::string_view text = example.OfficialTextOf(owner);
  const std::vector<ByteRange> looked_up = SplitUnigrams(text);
  std::vector<absl::string_view> touched;
  for (size_t i = 0; i < std::min(own.size(), looked_up.size()); ++i) {
    if (own[i].end > begin && own[i].begin < end) {
      touched.push_back(text.substr(
          static_cast<size_t>(looked_up[i].begin),
          static_cast<size_t>(looked_up[i].end - looked_up[i].begin)));
    }
  }
  return absl::StrJoin(touched, " ");
}

}  // namespace

std::string OriginalAnswerText(const HotpotqaExample& example, PieceSpan span) {
  const absl::string_view text = example.TextOf(OwnerOf(example, span));
  const int64_t begin =
      example.long_bytes[static_cast<size_t>(span.first)].begin;
  const int64_t end = BehindMarks(
      text,
      std::max(begin, example.long_bytes[static_cast<size_t>(span.last)].end));
  return std::string(StripWhiteSpace(text.substr(
      static_cast<size_t>(begin), static_cast<size_t>(end - begin))));
}

std::string OfficialAnswerText(const HotpotqaExample& example, PieceSpan span,
                               TokenizerKind kind, const Tokenizer& tokenizer) {
  if (kind == TokenizerKind::kWordPiece) {
    return ProjectAnswer(JoinedPieces(example, span, tokenizer),
                         TouchedUnigrams(example, span),
                         BasicOptionsOf(tokenizer));
  }
  if (kind == TokenizerKind::kHuggingFace) {
    return OriginalAnswerText(example, span);
  }
  std::vector<Token> pieces;
  for (int64_t i = span.first; i <= span.last; ++i) {
    const auto at = static_cast<size_t>(i);
    pieces.push_back({.id = example.long_token_ids[at],
                      .begin = example.long_bytes[at].begin,
                      .end = example.long_bytes[at].end});
  }
  return Detokenize(example.TextOf(OwnerOf(example, span)), pieces, tokenizer)
      .text;
}

}  // namespace etc
