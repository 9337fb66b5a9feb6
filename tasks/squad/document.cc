#include "tasks/squad/document.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tasks/inputs/text_input.h"
#include "tasks/inputs/unigrams.h"
#include "tasks/text/text_folding.h"
#include "tasks/text/unicode.h"

namespace etc {
namespace {

absl::string_view TextOf(absl::string_view text, ByteRange bytes) {
  return text.substr(static_cast<size_t>(bytes.begin),
                     static_cast<size_t>(bytes.end - bytes.begin));
}

// The pieces [first, last] of words [words.first, words.last].
SquadSpan PiecesOfWords(const std::vector<SquadPiece>& pieces,
                        SquadSpan words) {
  const auto first_of_word = [&pieces](int64_t word) {
    return std::partition_point(
               pieces.begin(), pieces.end(),
               [word](const SquadPiece& piece) { return piece.word < word; }) -
           pieces.begin();
  };
  return {.first = first_of_word(words.first),
          .last = first_of_word(words.last + 1) - 1};
}

// The first byte of an answer if it stands at its offset, or -1.
int64_t ByteAtOffset(const SquadAnswer& answer, absl::string_view context) {
  int64_t at = 0;
  for (int64_t i = 0; i < answer.start.value_or(0) &&
                      at < static_cast<int64_t>(context.size());
       ++i) {
    NextCodePoint(context, &at);
  }
  return absl::StartsWith(context.substr(static_cast<size_t>(at)), answer.text)
             ? at
             : -1;
}

// The first byte of an answer that touches bytes [within.begin, within.end):
// the one at its offset, or the first one there; -1 if there is none.
int64_t FirstByteOf(const SquadAnswer& answer, absl::string_view context,
                    ByteRange within) {
  if (const int64_t at = ByteAtOffset(answer, context); at >= 0) {
    return at;
  }
  const size_t found = TextOf(context, within).find(answer.text);
  return found == absl::string_view::npos
             ? -1
             : within.begin + static_cast<int64_t>(found);
}

}  // namespace

SquadWords FindSquadWords(absl::string_view context) {
  SquadWords found = {.words = SplitUnigrams(context)};
  size_t begun = 0;
  for (int64_t at = 0; at < static_cast<int64_t>(context.size());) {
    if (begun < found.words.size() && found.words[begun].begin == at) {
      ++begun;
    }
    found.word_of.push_back(static_cast<int32_t>(begun) - 1);
    NextCodePoint(context, &at);
  }
  return found;
}

std::string JoinSquadWords(absl::string_view context,
                           const std::vector<ByteRange>& words,
                           SquadSpan span) {
  std::string joined;
  for (int64_t i = span.first; i <= span.last; ++i) {
    absl::StrAppend(&joined, i == span.first ? "" : " ",
                    TextOf(context, words[static_cast<size_t>(i)]));
  }
  return joined;
}

std::optional<SquadSpan> FindAnswerWords(absl::string_view context,
                                         const SquadWords& words,
                                         const SquadAnswer& answer) {
  const int64_t length = CountCodePoints(answer.text);
  const int64_t start = answer.start.value_or(-1);
  const auto size = static_cast<int64_t>(words.word_of.size());
  if (start < 0 || length < 1 || start > size - length) {
    return std::nullopt;
  }
  const SquadSpan span = {
      .first = words.word_of[static_cast<size_t>(start)],
      .last = words.word_of[static_cast<size_t>(start + length - 1)]};
  if (span.first < 0 ||
      !absl::StrContains(JoinSquadWords(context, words.words, span),
                         absl::StrJoin(SplitWhiteSpace(answer.text), " "))) {
    return std::nullopt;
  }
  return span;
}

bool HoldsSpaceOfWords(absl::string_view context, const SquadAnswer& answer) {
  bool holds = false;
  for (int64_t at = 0; at < static_cast<int64_t>(answer.text.size());) {
    const CodePoint c = NextCodePoint(answer.text, &at);
    holds |= IsPythonSpace(c) && !IsUnigramSpace(c);
  }
  return holds && ByteAtOffset(answer, context) >= 0;
}

std::vector<SquadPiece> SplitSquadWords(absl::string_view context,
                                        const std::vector<ByteRange>& words,
                                        const Tokenizer& tokenizer) {
  std::vector<SquadPiece> pieces;
  for (size_t w = 0; w < words.size(); ++w) {
    const int64_t begin = words[w].begin;
    for (const Token& token :
         EncodeBehindBlank(TextOf(context, words[w]), tokenizer)) {
      pieces.push_back(
          {.id = token.id,
           .word = static_cast<int32_t>(w),
           .bytes = {.begin = begin + token.begin, .end = begin + token.end}});
    }
  }
  return pieces;
}

SquadSpan FindAnswerPieces(const std::vector<SquadPiece>& pieces,
                           SquadSpan words, absl::string_view answer,
                           const Tokenizer& tokenizer) {
  return FirstOccurrence(tokenizer.Encode(answer), PiecesOfWords(pieces, words),
                         pieces);
}

SquadSpan PiecesAtAnswer(absl::string_view context, const SquadWords& words,
                         SquadSpan answer_words, const SquadAnswer& answer,
                         const std::vector<SquadPiece>& pieces) {
  const SquadSpan whole = PiecesOfWords(pieces, answer_words);
  const auto word = [&words](int64_t w) {
    return words.words[static_cast<size_t>(w)];
  };
  const int64_t begin = FirstByteOf(answer, context,
                                    {.begin = word(answer_words.first).begin,
                                     .end = word(answer_words.last).end});
  if (begin < 0) {
    return whole;
  }
  const int64_t end = begin + static_cast<int64_t>(answer.text.size());
  return ItemsWithBytes(
      whole, {.begin = begin, .end = end},
      [&pieces](int64_t i) { return pieces[static_cast<size_t>(i)].bytes; });
}

std::vector<SquadPart> SquadWindows(int64_t num_pieces, int64_t room,
                                    int64_t stride) {
  std::vector<SquadPart> windows;
  for (int64_t begin = 0; begin < num_pieces;) {
    const int64_t length = std::min(room, num_pieces - begin);
    windows.push_back({.begin = begin, .length = length});
    if (begin + length == num_pieces) {
      break;
    }
    begin += std::min(length, stride);
  }
  return windows;
}

std::vector<int32_t> WindowsOfMostContext(const std::vector<SquadPart>& windows,
                                          int64_t num_pieces) {
  constexpr double kLengthWeight = 0.01;
  const auto size = static_cast<size_t>(num_pieces);
  std::vector<int32_t> best(size, -1);
  std::vector<double> best_scores(size, -1);
  for (size_t w = 0; w < windows.size(); ++w) {
    const SquadPart window = windows[w];
    for (int64_t i = 0; i < window.length; ++i) {
      const double score =
          static_cast<double>(std::min(i, window.length - 1 - i)) +
          kLengthWeight * static_cast<double>(window.length);
      const auto piece = static_cast<size_t>(window.begin + i);
      if (score > best_scores[piece]) {
        best_scores[piece] = score;
        best[piece] = static_cast<int32_t>(w);
      }
    }
  }
  return best;
}

}  // namespace etc
