#include "tasks/hotpotqa/answer_text.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "tasks/text/basic_tokenizer.h"
#include "tasks/text/text_folding.h"
#include "tasks/text/unicode.h"

namespace etc {
namespace {

// The code points of a text; bytes that are not UTF-8 are left out.
std::vector<CodePoint> CodePointsOf(absl::string_view text) {
  std::vector<CodePoint> points;
  for (int64_t at = 0; at < static_cast<int64_t>(text.size());) {
    if (const CodePoint c = NextCodePoint(text, &at); c >= 0) {
      points.push_back(c);
    }
  }
  return points;
}

// The places of what is no blank.
std::vector<size_t> NonBlanks(const std::vector<CodePoint>& text) {
  std::vector<size_t> places;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != ' ') {
      places.push_back(i);
    }
  }
  return places;
}

// The global token of the sentence or title that a span lies in.
int32_t OwnerOf(const HotpotqaExample& example, PieceSpan span) {
  return example.pattern.sentence[static_cast<size_t>(span.first)];
}

std::string JoinedPieces(const HotpotqaExample& example, PieceSpan span,
                         const Tokenizer& tokenizer) {
  std::vector<std::string> pieces;
  for (int64_t i = span.first; i <= span.last; ++i) {
    pieces.push_back(
        tokenizer.Piece(example.long_token_ids[static_cast<size_t>(i)]));
  }
  std::string joined = absl::StrJoin(pieces, " ");
  absl::StrReplaceAll({{" ##", ""}}, &joined);
  absl::StrReplaceAll({{"##", ""}}, &joined);
  return absl::StrJoin(absl::StrSplit(joined, ' ', absl::SkipEmpty()), " ");
}

// The unigrams that a span touches, joined by blanks: their numbers are those
// in its own text, what they are is looked up in the official one, which may
// have fewer.
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

// Where the combining marks that follow byte `at` end: pieces leave out those
// that normalisation drops.
int64_t BehindMarks(absl::string_view text, int64_t at) {
  for (int64_t next = at; next < static_cast<int64_t>(text.size()); at = next) {
    const CodePoint c = NextCodePoint(text, &next);
    if (c < 0 || (U_GET_GC_MASK(c) & U_GC_M_MASK) == 0) {
      break;
    }
  }
  return at;
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
                         TouchedUnigrams(example, span));
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

std::string ProjectAnswer(absl::string_view pieces, absl::string_view raw) {
  const std::vector<CodePoint> original = CodePointsOf(raw);
  const std::vector<CodePoint> tokenized =
      CodePointsOf(absl::StrJoin(BasicWords(raw), " "));
  const std::vector<CodePoint> wanted = CodePointsOf(pieces);
  const std::vector<size_t> original_places = NonBlanks(original);
  const std::vector<size_t> tokenized_places = NonBlanks(tokenized);
  const auto found = std::search(tokenized.begin(), tokenized.end(),
                                 wanted.begin(), wanted.end());
  if (wanted.empty() || found == tokenized.end() ||
      original_places.size() != tokenized_places.size()) {
    return std::string(raw);
  }
  const auto first = static_cast<size_t>(found - tokenized.begin());
  const size_t last = first + wanted.size() - 1;
  const auto place = [&](size_t at) {
    return std::lower_bound(tokenized_places.begin(), tokenized_places.end(),
                            at) -
           tokenized_places.begin();
  };
  if (tokenized[first] == ' ' || tokenized[last] == ' ') {
    return std::string(raw);
  }
  std::string answer;
  for (size_t i = original_places[static_cast<size_t>(place(first))];
       i <= original_places[static_cast<size_t>(place(last))]; ++i) {
    AppendUtf8(original[i], &answer);
  }
  return answer;
}

}  // namespace etc
