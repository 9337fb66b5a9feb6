// Mentions of candidates in sentences, by both rules of doc/wikihop.md 3.4.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tasks/wikihop/example.h"
#include "tests/tasks/text/word_tokenizer.h"

namespace etc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<Mention> Find(const Tokenizer& tokenizer,
                          MentionAlignment alignment,
                          const std::string& sentence,
                          const std::vector<std::string>& candidates) {
  std::vector<CandidatePieces> pieces;
  for (const std::string& candidate : candidates) {
    pieces.push_back({candidate, tokenizer.Encode(candidate)});
  }
  return FindMentions(sentence, tokenizer.Encode(sentence), pieces, alignment,
                      tokenizer);
}

TEST(FindMentionsTest, FindsOverlappingMentions) {
  const WordTokenizer tokenizer({"a", "b"});
  for (const MentionAlignment alignment :
       {MentionAlignment::kPieces, MentionAlignment::kCharacters}) {
    EXPECT_THAT(
        Find(tokenizer, alignment, "A a a b a", {"a a", "b a"}),
        ElementsAre(Mention{0, 0, 1}, Mention{0, 1, 2}, Mention{1, 3, 4}));
  }
}

TEST(FindMentionsTest, NeedsTheTextToOccur) {
  // The pieces are equal, the texts are not: an additional blank.
  const WordTokenizer tokenizer({"a", "b"});
  EXPECT_THAT(Find(tokenizer, MentionAlignment::kPieces, "a  b", {"a b"}),
              IsEmpty());
}

TEST(FindMentionsTest, NeedsThePiecesToBeEqual) {
  const WordTokenizer tokenizer({"oslo", "oslos"});
  EXPECT_THAT(Find(tokenizer, MentionAlignment::kPieces, "oslos", {"oslo"}),
              IsEmpty());
}

TEST(FindMentionsTest, TakesUnknownWordsForEqual) {
  // [UNK] is the same to WordPiece; "x" occurs, so the gate is open for all of
  // them.
  const WordTokenizer tokenizer({"a"});
  EXPECT_THAT(Find(tokenizer, MentionAlignment::kPieces, "x a y", {"x"}),
              ElementsAre(Mention{0, 0, 0}, Mention{0, 2, 2}));
}

// Calls its unknown piece as SentencePiece does.
class SentencePieceLikeTokenizer : public WordTokenizer {
 public:
  using WordTokenizer::WordTokenizer;
  int32_t Id(absl::string_view piece) const override {
    return WordTokenizer::Id(piece == "<unk>" ? "[UNK]" : piece);
  }
};

TEST(FindMentionsTest, ComparesTheTextOfUnknownSentencePieces) {
  const SentencePieceLikeTokenizer tokenizer({"a"});
  EXPECT_THAT(Find(tokenizer, MentionAlignment::kPieces, "x a y", {"x"}),
              ElementsAre(Mention{0, 0, 0}));
}

TEST(FindMentionsTest, MissesCasedPiecesButNotCharacters) {
  const WordTokenizer tokenizer({"Oslo", "Fjord", "oslo", "fjord", "the"},
                                /*lower_cases=*/false);
  const std::string sentence = "the Oslo Fjord the oslo";
  EXPECT_THAT(Find(tokenizer, MentionAlignment::kPieces, sentence,
                   {"oslo fjord", "oslo"}),
              ElementsAre(Mention{1, 4, 4}));
  EXPECT_THAT(
      Find(tokenizer, MentionAlignment::kCharacters, sentence,
           {"oslo fjord", "oslo"}),
      ElementsAre(Mention{0, 1, 2}, Mention{1, 1, 1}, Mention{1, 4, 4}));
}

TEST(FindMentionsTest, CoversThePiecesThatCharactersTouch) {
  const WordTokenizer tokenizer({});
  EXPECT_THAT(Find(tokenizer, MentionAlignment::kCharacters,
                   "\u0130X northern norwegian", {"n nor"}),
              ElementsAre(Mention{0, 1, 2}));
  // A part of a character that became two stands for all of it.
  EXPECT_THAT(Find(tokenizer, MentionAlignment::kCharacters, "x \u0130", {"i"}),
              ElementsAre(Mention{0, 1, 1}));
}

TEST(FindMentionsTest, LeavesOutPunctuationThatTouchesCharacters) {
  const WordTokenizer tokenizer({});
  EXPECT_THAT(Find(tokenizer, MentionAlignment::kCharacters, "in (Oslo), too",
                   {"oslo"}),
              ElementsAre(Mention{0, 2, 2}));
}

}  // namespace
}  // namespace etc
