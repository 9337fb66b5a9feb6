// Answers found in a text (doc/hotpotqa.md 2.1, 2.2) to the golden values of
// doc/hotpotqa.md 10.3, and the text that SentencePiece's pieces spell.

#include "tasks/hotpotqa/answer_spans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/tasks/inputs/byte_level_tokenizer.h"
#include "tests/tasks/text/word_tokenizer.h"

namespace etc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

PieceSpan Span(int64_t first, int64_t last) {
  return {.first = first, .last = last};
}

std::vector<PieceSpan> Find(const std::string& text,
                            const std::string& answer) {
  // All words known, so that pieces of different words have different ids.
  const WordTokenizer tokenizer(
      {"the",         "leader",   "was",  "john",    "smith", "(",
       "1895",        "-",        "1943", ")",       ".",     "japanese",
       "he",          "wrote",    "39",   "operas",  ",",     "opera",
       "fans",        "i",        "know", "say",     "aaa",   "aa",
       "electronics", "industry", "no",   "nothing", "japan"});
  const AnswerFinder finder(answer, TokenizerKind::kWordPiece, &tokenizer);
  return finder.Find(text, tokenizer.Encode(text));
}

TEST(AnswerFinderTest, MatchesTheGoldenValues) {  // doc/hotpotqa.md 10.3
  EXPECT_THAT(Find("The leader was John Smith (1895-1943).", "1895"),
              ElementsAre(Span(6, 6)));
  EXPECT_THAT(Find("The Japanese electronics industry", "Japan"),
              ElementsAre(Span(1, 1)));
  EXPECT_THAT(Find("He wrote 39 operas, opera fans say", "opera"),
              ElementsAre(Span(3, 4), Span(5, 5)));
  EXPECT_THAT(Find("aaa", "aa"), ElementsAre(Span(0, 0)));
  EXPECT_THAT(Find("I know nothing.", "no"),
              ElementsAre(Span(1, 1), Span(2, 3)));
}

TEST(AnswerFinderTest, FindsThePiecesAtTheEndOfAUnigram) {
  EXPECT_THAT(Find("John Smith 1895-1943 was the leader", "1943"),
              ElementsAre(Span(4, 4)));
  EXPECT_THAT(Find("He was (1895", "1895"), ElementsAre(Span(3, 3)));
}

TEST(AnswerFinderTest, RespectsCase) {  // doc/hotpotqa.md 11, trap 8
  EXPECT_THAT(Find("I know the leader", "The"), IsEmpty());
  EXPECT_THAT(Find("I know the leader", "the leader"), ElementsAre(Span(2, 3)));
}

TEST(AnswerFinderTest, FindsNothingForAnEmptyAnswerOrText) {
  EXPECT_THAT(Find("aaa", ""), IsEmpty());
  EXPECT_THAT(Find("", "aa"), IsEmpty());
  EXPECT_THAT(Find(" \t\n", " "), IsEmpty());
}

TEST(AnswerFinderTest, TakesBlanksForPartOfWhatIsBeforeThem) {
  EXPECT_THAT(Find(" the leader ", " "),
              ElementsAre(Span(0, 0), Span(0, 0), Span(1, 1)));
}

// Pieces of a few texts, as SentencePiece would make them.
class MarkedPieces : public Tokenizer {
 public:
  std::vector<Token> Encode(absl::string_view) const override {
    return {{0, 0, 4}, {1, 4, 8}, {2, 8, 9}, {3, 9, 11}};
  }
  int64_t vocab_size() const override { return 4; }
  std::string Piece(int32_t id) const override {
    return std::vector<std::string>{"\u2581Jane", "\u2581Roe", ",",
                                    "<unk>"}[static_cast<size_t>(id)];
  }
  int32_t Id(absl::string_view) const override { return -1; }
  bool lower_cases() const override { return false; }
};

TEST(DetokenizeTest, DropsTheFirstMarkAndShowsUnknownText) {
  const MarkedPieces tokenizer;
  const std::string text = "Jane Roe,\u00fe";
  const DetokenizedText detokenized =
      Detokenize(text, tokenizer.Encode(text), tokenizer);
  EXPECT_EQ(detokenized.text, text);
  // A blank belongs to the piece behind it.
  EXPECT_THAT(detokenized.piece_of_byte,
              ElementsAre(0, 0, 0, 0, 1, 1, 1, 1, 2, 3, 3));
}

TEST(AnswerFinderTest, FindsByPiecesWithSentencePiece) {
  const MarkedPieces tokenizer;
  const std::string text = "Jane Roe,\u00fe";
  const auto find = [&](const std::string& answer) {
    return AnswerFinder(answer, TokenizerKind::kSentencePiece, &tokenizer)
        .Find(text, tokenizer.Encode(text));
  };
  EXPECT_THAT(find("Jane Roe"), ElementsAre(Span(0, 1)));
  EXPECT_THAT(find("oe"), ElementsAre(Span(1, 1)));
  EXPECT_THAT(find("e"), ElementsAre(Span(0, 0), Span(1, 1)));
  EXPECT_THAT(find("jane"), IsEmpty());
}

TEST(AnswerFinderTest, FindsByBytesWithATokenizerJson) {
  const auto tokenizer = ByteLevelTokenizer({"the", "Ġthe", "cat", "Ġcat"});
  ASSERT_NE(tokenizer, nullptr);
  const std::string text = "the cat, (the cat).";
  const std::vector<Token> pieces = tokenizer->Encode(text);
  ASSERT_EQ(pieces.size(), 9u);  // the Ġcat , Ġ ( the Ġcat ) .
  const auto find = [&](const std::string& answer) {
    return AnswerFinder(answer, TokenizerKind::kHuggingFace, tokenizer.get())
        .Find(text, pieces);
  };
  EXPECT_THAT(find("cat"), ElementsAre(Span(1, 1), Span(6, 6)));
  EXPECT_THAT(find("the"), ElementsAre(Span(0, 0), Span(5, 5)));
  EXPECT_THAT(find("the cat"), ElementsAre(Span(0, 1), Span(5, 6)));
  EXPECT_THAT(find("at"), ElementsAre(Span(1, 1), Span(6, 6)));
  // Blanks have pieces, and no unigram.
  ASSERT_EQ(tokenizer->Encode(" ").size(), 1u);
  EXPECT_THAT(AnswerFinder(" ", TokenizerKind::kHuggingFace, tokenizer.get())
                  .Find(" ", tokenizer->Encode(" ")),
              IsEmpty());
}

}  // namespace
}  // namespace etc
