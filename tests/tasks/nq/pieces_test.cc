// The part of a page that models read, and the begins of windows over it, to
// the golden values of doc/nq.md 9.1 and 9.2; special tokens by name (doc/nq.md
// 2.1).

#include "tasks/nq/pieces.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/text/sentencepiece_tokenizer.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/inputs/byte_level_tokenizer.h"
#include "tests/tasks/nq/page_record.h"
#include "tests/tasks/text/tiny_sentencepiece_model.h"

namespace etc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(NqPiecesTest, AreThoseOfTopLevelCandidates) {  // doc/nq.md 9.1, trap 7
  const NqPieces pieces = NqPiecesOf(NqSpecRecord(), NqSpecTokenizer(), {});
  EXPECT_THAT(pieces.ids, ElementsAre(107, 202, 203, 204, 205, 206, 207, 208,
                                      209, 108, 107, 107, 210, 211, 108, 108));
  EXPECT_THAT(pieces.candidates,
              ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1));
  EXPECT_THAT(pieces.tokens, ElementsAre(3, 4, 5, 6, 6, 7, 8, 9, 10, 11, 12, 13,
                                         14, 15, 16, 17));
}

// doc/nq.md 10, trap 7
TEST(NqPiecesTest, CountCandidatesAmongAllOfTheRecord) {
  const NqRecord record =
      NqPage("<Ul> <Li> Ann </Li> </Ul> Lee <P> by </P>", "");
  const NqPieces pieces = NqPiecesOf(record, NqSpecTokenizer(), {});
  EXPECT_THAT(pieces.candidates, ElementsAre(0, 0, 0, 0, 0, 2, 2, 2));
  EXPECT_THAT(pieces.tokens, ElementsAre(0, 1, 2, 3, 4, 6, 7, 8));
}

TEST(NqPiecesTest, LeaveOutWordsWithoutPieces) {
  const NqPieces pieces =
      NqPiecesOf(NqPage("<P> nothing by </P>", ""), NqSpecTokenizer(), {});
  EXPECT_THAT(pieces.tokens, ElementsAre(0, 2, 3));
  EXPECT_THAT(
      NqPiecesOf(NqPage("<H1> by </H1>", ""), NqSpecTokenizer(), {}).ids,
      IsEmpty());
}

TEST(NqPiecesTest, CountATokenOnceWhereTopLevelCandidatesOverlap) {
  NqRecord record = NqSpecRecord();
  record.candidates[2].top_level = true;
  record.candidates.push_back({.span = NqTokenSpan(0, 18), .top_level = true});
  const NqPieces pieces = NqPiecesOf(record, NqSpecTokenizer(), {});
  EXPECT_THAT(pieces.tokens, ElementsAre(3, 4, 5, 6, 6, 7, 8, 9, 10, 11, 12, 13,
                                         14, 15, 16, 17, 0, 1, 2));
  EXPECT_EQ(pieces.candidates.back(), 3);
}

TEST(NqPiecesTest, AreThoseOfWordsBehindBlanks) {
  const auto tokenizer = ByteLevelTokenizer({"by", "Ġby"});
  ASSERT_NE(tokenizer, nullptr);
  const NqPieces pieces =
      NqPiecesOf(NqPage("<P> by by </P>", ""), *tokenizer,
                 {.opening_tag = 1000, .closing_tag = 1001});
  EXPECT_THAT(pieces.ids, ElementsAre(1000, 257, 257, 1001));
}

TEST(NqWindowStartsTest, AreAsManyAsInTheSpec) {  // doc/nq.md 9.2, 2.3
  for (int64_t n = 0; n <= 10; ++n) {
    EXPECT_THAT(NqWindowStarts(n, 10, 5), ElementsAre(0)) << n;
  }
  EXPECT_THAT(NqWindowStarts(11, 10, 5), ElementsAre(0, 5));
  EXPECT_THAT(NqWindowStarts(15, 10, 5), ElementsAre(0, 5));
  EXPECT_THAT(NqWindowStarts(16, 10, 5), ElementsAre(0, 5, 10));
  EXPECT_THAT(NqWindowStarts(20, 10, 5), ElementsAre(0, 5, 10));
  EXPECT_THAT(NqWindowStarts(21, 10, 5), ElementsAre(0, 5, 10, 15));
  EXPECT_THAT(NqWindowStarts(4062, 4061, 2048), ElementsAre(0, 2048));
}

TEST(NqWindowStartsTest, CoverEveryPiece) {
  for (int64_t room = 1; room < 12; ++room) {
    for (int64_t stride = 1; stride <= room; ++stride) {
      for (int64_t n = 0; n < 40; ++n) {
        const std::vector<int64_t> starts = NqWindowStarts(n, room, stride);
        EXPECT_GE(starts.back() + room, n);
        EXPECT_LE(starts.back(), n);
        // No window that could be left out.
        EXPECT_TRUE(starts.size() == 1 || starts.back() - stride + room < n)
            << n << " " << room << " " << stride;
      }
    }
  }
}

TEST(NqTokensTest, AreLookedUpByName) {  // doc/nq.md 2.1
  const auto tokens = NqTokensOf(TokenizerKind::kWordPiece, NqSpecTokenizer());
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ(tokens->cls, 101);
  EXPECT_EQ(tokens->separator, 102);
  EXPECT_EQ(tokens->opening_tag, 107);
  EXPECT_EQ(tokens->closing_tag, 108);
}

TEST(NqTokensTest, HaveOtherNamesWithSentencePiece) {
  TemporaryDirectory directory;
  const auto tokens_of =
      [&](const std::vector<std::pair<std::string, float>>& pieces) {
        const auto tokenizer = LoadSentencePieceTokenizer(
            directory.Write("m.model", TinySentencePieceModel(pieces).bytes()));
        EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
        return NqTokensOf(TokenizerKind::kSentencePiece, **tokenizer);
      };
  std::vector<std::pair<std::string, float>> pieces = {{"<unused_36>", -1},
                                                       {"<unused_35>", -1},
                                                       {"<unused_2>", -1},
                                                       {"<unused_63>", -1}};
  const auto tokens = tokens_of(pieces);
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ(tokens->closing_tag, 3);
  EXPECT_EQ(tokens->opening_tag, 4);
  EXPECT_EQ(tokens->separator, 5);
  EXPECT_EQ(tokens->cls, 6);
  pieces.erase(pieces.begin());
  const auto lacking = tokens_of(pieces).status();
  EXPECT_EQ(lacking.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(lacking.message()),
              HasSubstr("should have the piece \"<unused_36>\", which stands "
                        "for a closing HTML tag"));
}

}  // namespace
}  // namespace etc
