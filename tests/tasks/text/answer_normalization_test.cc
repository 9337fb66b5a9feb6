// The official normalisation of answers (doc/hotpotqa.md 8 and 10.7) on the
// characters where implementations differ. Expected values are what the
// official Python gives.

#include "tasks/text/answer_normalization.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace etc {
namespace {

TEST(NormalizeAnswerTest, DeletesPunctuationInsteadOfReplacingIt) {
  EXPECT_EQ(NormalizeAnswer("U.S.A."), "usa");
  EXPECT_EQ(NormalizeAnswer("The Eiffel-Tower"), "eiffeltower");
  EXPECT_EQ(NormalizeAnswer("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"), "");
}

TEST(NormalizeAnswerTest, KeepsPunctuationBeyondAscii) {
  EXPECT_EQ(NormalizeAnswer("1895\u20131943"), "1895\u20131943");
  EXPECT_EQ(NormalizeAnswer("\u201cX\u201d"), "\u201cx\u201d");
}

TEST(NormalizeAnswerTest, DropsArticlesThatAreWordsOfTheirOwn) {
  EXPECT_EQ(NormalizeAnswer("the the cat"), "cat");
  EXPECT_EQ(NormalizeAnswer("A theme an anthem"), "theme anthem");
  EXPECT_EQ(NormalizeAnswer("The"), "");
  // Punctuation is gone before articles are looked for.
  EXPECT_EQ(NormalizeAnswer("a_b t-he cat"), "ab cat");
}

TEST(NormalizeAnswerTest, SeesTheBordersOfWordsAsPythonDoes) {
  // A dash is no letter, so an article stands beside it.
  EXPECT_EQ(NormalizeAnswer("the\u2013end"), "\u2013end");
  // An accented letter is one; a combining accent is not.
  EXPECT_EQ(NormalizeAnswer("th\u00e9 the\u00e9"), "th\u00e9 the\u00e9");
  EXPECT_EQ(NormalizeAnswer("a\u0301b"), "\u0301b");
  EXPECT_EQ(NormalizeAnswer("a\u00b2 a\u4e00"), "a\u00b2 a\u4e00");
}

TEST(NormalizeAnswerTest, MakesAllWhiteSpaceOneBlank) {
  EXPECT_EQ(NormalizeAnswer(" New\u00a0 York\t\ncity\u3000"), "new york city");
  EXPECT_EQ(NormalizeAnswer(""), "");
}

TEST(WordOverlapTest, CountsWordsAsOftenAsTheyOccur) {
  const PrecisionRecall overlap = WordOverlap("new york city", "new york");
  EXPECT_DOUBLE_EQ(overlap.precision, 2.0 / 3);
  EXPECT_DOUBLE_EQ(overlap.recall, 1.0);
  EXPECT_DOUBLE_EQ(overlap.f1(), 0.8);
  const PrecisionRecall repeated = WordOverlap("b b b", "b c");
  EXPECT_DOUBLE_EQ(repeated.precision, 1.0 / 3);
  EXPECT_DOUBLE_EQ(repeated.recall, 0.5);
}

TEST(WordOverlapTest, IsZeroWithoutACommonWord) {
  EXPECT_EQ(WordOverlap("x", "y").f1(), 0.0);
  EXPECT_EQ(WordOverlap("", "").f1(), 0.0);
}

}  // namespace
}  // namespace etc
