// The text forms of doc/wikihop.md 1.3 on the characters where implementations
// differ. Expected values are what Python 3 gives.

#include "tasks/text/text_folding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

namespace etc {
namespace {

using ::testing::ElementsAre;

TEST(StripWhiteSpaceTest, RemovesUnicodeSpaceAtBothEndsOnly) {
  EXPECT_EQ(StripWhiteSpace(" \t\r\n a b \f\v"), "a b");
  EXPECT_EQ(StripWhiteSpace("\u00a0\u2003oslo\u3000\u2029\u0085"), "oslo");
  EXPECT_EQ(StripWhiteSpace("\u202f\u205f\u1680x\u2000"), "x");
  EXPECT_EQ(StripWhiteSpace("\x1c\x1d\x1e\x1fx\x1f"), "x");
}

TEST(StripWhiteSpaceTest, LeavesWhatPythonDoesNotCallSpace) {
  // Zero width space and the byte order mark.
  EXPECT_EQ(StripWhiteSpace("\u200bx\ufeff"), "\u200bx\ufeff");
}

TEST(StripWhiteSpaceTest, MakesSpaceAloneEmpty) {
  EXPECT_EQ(StripWhiteSpace(""), "");
  EXPECT_EQ(StripWhiteSpace(" \u3000 "), "");
}

TEST(IsBlankTest, IsTrueWithoutACharacterThatIsNotSpace) {
  EXPECT_TRUE(IsBlank(""));
  EXPECT_TRUE(IsBlank(" \u3000\n"));
  EXPECT_FALSE(IsBlank(" \u200b"));
}

TEST(SplitWhiteSpaceTest, GivesWhatPythonSplits) {
  EXPECT_THAT(SplitWhiteSpace("\u00a0the \t old\u3000town\x1f"),
              ElementsAre("the", "old", "town"));
  EXPECT_THAT(SplitWhiteSpace("a\u200b \xff"), ElementsAre("a\u200b", "\xff"));
  EXPECT_THAT(SplitWhiteSpace(" \u2028"), ElementsAre());
  EXPECT_THAT(SplitWhiteSpace(""), ElementsAre());
}

// ICU's texts have at most 2^31 - 1 bytes. The pages of this one are never
// read.
TEST(LowerCaseTest, RefusesTextsThatAreTooLong) {
  const absl::string_view text(
      "", static_cast<size_t>(std::numeric_limits<int32_t>::max()) + 1);
  EXPECT_THROW(LowerCase(text), std::length_error);
  EXPECT_THROW(LowerCaseWithOrigin(text), std::length_error);
}

TEST(LowerCaseTest, IsFullAndIndependentOfLanguage) {
  EXPECT_EQ(LowerCase("OSLO \u00c9\u0416"), "oslo \u00e9\u0436");
  EXPECT_EQ(LowerCase("\u0130"), "i\u0307");  // two code points
  EXPECT_EQ(LowerCase("I"), "i");             // not a dotless i
}

TEST(LowerCaseTest, GivesSigmaItsFinalForm) {
  EXPECT_EQ(LowerCase("\u03a3\u03a3"), "\u03c3\u03c2");
  EXPECT_EQ(LowerCase("\u039f\u03a3 \u03a3\u039f"),
            "\u03bf\u03c2 \u03c3\u03bf");
  EXPECT_EQ(LowerCase("\u03a3"), "\u03c3");
}

TEST(LowerCaseTest, SaysWhereEachByteComesFrom) {
  const AlignedLowerCase lower = LowerCaseWithOrigin("a\u0130Bc");
  EXPECT_EQ(lower.text, "ai\u0307bc");
  EXPECT_THAT(lower.origin, ElementsAre(0, 1, 1, 1, 3, 4, 5));
}

TEST(LowerCaseTest, SaysOriginsOfTextThatStaysAsItIs) {
  const AlignedLowerCase lower = LowerCaseWithOrigin("\u00e9a");
  EXPECT_EQ(lower.text, "\u00e9a");
  EXPECT_THAT(lower.origin, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(LowerCaseWithOrigin("").origin, ElementsAre(0));
}

}  // namespace
}  // namespace etc
