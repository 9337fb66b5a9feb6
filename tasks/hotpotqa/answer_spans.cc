#include "tasks/hotpotqa/answer_spans.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "tasks/inputs/unigrams.h"

namespace etc {
namespace {

constexpr absl::string_view kWordMark = "\u2581";
constexpr absl::string_view kUnknownWord = "<unk>";

// First bytes of the occurrences of `answer`, which is not empty.
std::vector<int64_t> Occurrences(absl::string_view text,
                                 absl::string_view answer) {
  std::vector<int64_t> begins;
  for (size_t at = text.find(answer); at != absl::string_view::npos;
       at = text.find(answer, at + answer.size())) {
    begins.push_back(static_cast<int64_t>(at));
  }
  return begins;
}

// Returns the index of the last unigram that begins at or before a byte:
// delimiters belong to the unigram before them, and at the front to the first
// one.
size_t UnigramAt(const std::vector<ByteRange>& unigrams, int64_t byte) {
  const auto after = std::upper_bound(
      unigrams.begin(), unigrams.end(), byte,
      [](int64_t at, const ByteRange& unigram) { return at < unigram.begin; });
  return after == unigrams.begin()
             ? 0
             : static_cast<size_t>(after - unigrams.begin()) - 1;
}

// The index of the first piece that begins at or behind a byte.
int64_t PieceFrom(const std::vector<Token>& pieces, int64_t byte) {
  return std::lower_bound(
             pieces.begin(), pieces.end(), byte,
             [](const Token& piece, int64_t at) { return piece.begin < at; }) -
         pieces.begin();
}

}  // namespace

DetokenizedText Detokenize(absl::string_view text,
                           const std::vector<Token>& pieces,
                           const Tokenizer& tokenizer) {
  DetokenizedText result;
  for (size_t i = 0; i < pieces.size(); ++i) {
    std::string spelt = tokenizer.Piece(pieces[i].id);
    if (spelt == kUnknownWord) {
      spelt = std::string(
          text.substr(static_cast<size_t>(pieces[i].begin),
                      static_cast<size_t>(pieces[i].end - pieces[i].begin)));
    }
    if (i == 0 && absl::StartsWith(spelt, kWordMark)) {
      spelt.erase(0, kWordMark.size());
    }
    absl::StrReplaceAll({{kWordMark, " "}}, &spelt);
    result.text += spelt;
    result.piece_of_byte.resize(result.text.size(), static_cast<int64_t>(i));
  }
  return result;
}

AnswerFinder::AnswerFinder(std::string answer, TokenizerKind kind,
                           const Tokenizer* tokenizer)
    : answer_(std::move(answer)),
      kind_(kind),
      tokenizer_(tokenizer),
      answer_pieces_(tokenizer->Encode(answer_)) {}

std::vector<PieceSpan> AnswerFinder::Find(
    absl::string_view text, const std::vector<Token>& pieces) const {
  if (answer_.empty() || pieces.empty()) {
    return {};
  }
  return kind_ == TokenizerKind::kSentencePiece
             ? FindInDetokenized(text, pieces)
             : FindInUnigrams(text, pieces);
}

std::vector<PieceSpan> AnswerFinder::FindInUnigrams(
    absl::string_view text, const std::vector<Token>& pieces) const {
  const std::vector<int64_t> begins = Occurrences(text, answer_);
  if (begins.empty()) {
    return {};
  }
  const std::vector<ByteRange> unigrams = SplitUnigrams(text);
  if (unigrams.empty()) {
    return {};  // blanks alone, of which byte-level tokenizers make pieces
  }
  std::vector<PieceSpan> spans;
  for (const int64_t begin : begins) {
    const int64_t last_byte = begin + static_cast<int64_t>(answer_.size()) - 1;
    const size_t first = UnigramAt(unigrams, begin);
    const size_t last = UnigramAt(unigrams, last_byte);
    const PieceSpan span{.first = PieceFrom(pieces, unigrams[first].begin),
                         .last = PieceFrom(pieces, unigrams[last].end) - 1};
    // Control characters make unigrams without pieces.
    if (span.first > span.last) {
      continue;
    }
    spans.push_back(
        kind_ == TokenizerKind::kHuggingFace
            ? ItemsWithBytes(
                  span, {.begin = begin, .end = last_byte + 1},
                  [&pieces](int64_t i) {
                    const auto& piece = pieces[static_cast<size_t>(i)];
                    return ByteRange{.begin = piece.begin, .end = piece.end};
                  })
            : FirstOccurrence(answer_pieces_, span, pieces));
  }
  return spans;
}

std::vector<PieceSpan> AnswerFinder::FindInDetokenized(
    absl::string_view text, const std::vector<Token>& pieces) const {
  const DetokenizedText detokenized = Detokenize(text, pieces, *tokenizer_);
  std::vector<PieceSpan> spans;
  for (const int64_t begin : Occurrences(detokenized.text, answer_)) {
    const size_t first = static_cast<size_t>(begin);
    spans.push_back(
        {.first = detokenized.piece_of_byte[first],
         .last = detokenized.piece_of_byte[first + answer_.size() - 1]});
  }
  return spans;
}

}  // namespace etc
