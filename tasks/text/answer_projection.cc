#include "tasks/text/answer_projection.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
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

// The positions of characters that are not blank.
std::vector<size_t> NonBlanks(const std::vector<CodePoint>& text) {
  std::vector<size_t> places;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != ' ') {
      places.push_back(i);
    }
  }
  return places;
}

}  // namespace

std::string WordsOfPieces(absl::Span<const int32_t> ids,
                          const Tokenizer& tokenizer) {
  std::vector<std::string> pieces;
  pieces.reserve(ids.size());
  for (const int32_t id : ids) {
    pieces.push_back(tokenizer.Piece(id));
  }
  std::string joined = absl::StrJoin(pieces, " ");
  absl::StrReplaceAll({{" ##", ""}}, &joined);
  absl::StrReplaceAll({{"##", ""}}, &joined);
  return absl::StrJoin(absl::StrSplit(joined, ' ', absl::SkipEmpty()), " ");
}

std::string ProjectAnswer(absl::string_view pieces, absl::string_view raw,
                          const BasicTokenizerOptions& options) {
  const std::vector<CodePoint> original = CodePointsOf(raw);
  const std::vector<CodePoint> tokenized =
      CodePointsOf(absl::StrJoin(BasicWords(raw, options), " "));
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
