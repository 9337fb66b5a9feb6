// Words, types and classes of words against what NLTK's regular expressions
// (read by Python's `re`) make of the same texts.
#include "tasks/text/punkt_words.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace etc {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(PunktWordsTest, KeepsFullStopsWithTheirWords) {
  EXPECT_THAT(PunktWords("Mr. Smith's 3.5 p.m. tea, etc.,"),
              ElementsAre("Mr.", "Smith", "'s", "3.5", "p.m.", "tea", ",",
                          "etc.", ","));
}

TEST(PunktWordsTest, SplitsPunctuationOff) {
  EXPECT_THAT(PunktWords("(a) \"b\" `c' {d}[e]: f;g&h #i *j@k -l m-n o,p"),
              ElementsAre("(", "a", ")", "\"", "b", "\"", "`", "c", "'", "{",
                          "d", "}", "[", "e", "]", ":", "f", ";", "g&h", "#",
                          "i", "*", "j", "@", "k", "-", "l", "m-n", "o,p"));
  EXPECT_THAT(PunktWords("“a” ‘b’ «c» d?! e"),
              ElementsAre("“a", "”", "‘b", "’", "«c", "»", "d", "?", "!", "e"));
}

TEST(PunktWordsTest, KnowsRepeatedMarks) {
  EXPECT_THAT(PunktWords("a--b... ---. . .c ....d . .e"),
              ElementsAre("a", "--", "b", "...", "---", ". . .", "c", "....",
                          "d", ".", ".e"));
  // One white space character between two full stops, whichever; no line end.
  EXPECT_THAT(PunktWords(".\u00A0.\t."), ElementsAre(".\u00A0.\t."));
  EXPECT_THAT(PunktWords(".  . ."), ElementsAre(".", ".", "."));
  EXPECT_THAT(PunktWords(".\n. ."), ElementsAre(".", ".", "."));
  EXPECT_THAT(PunktWords(". . . . x"), ElementsAre(". . . .", "x"));
}

TEST(PunktWordsTest, SplitsAtUnicodeWhiteSpace) {
  EXPECT_THAT(PunktWords("a\u00A0b\u3000c\u2029d\u0085e\x1C"
                         "f\u200Bg"),
              ElementsAre("a", "b", "c", "d", "e", "f\u200Bg"));
  EXPECT_THAT(PunktWords(" \n\n \u3000\n"), IsEmpty());
  EXPECT_THAT(PunktWords("a\xFF\xE2 b"), ElementsAre("a\xFF\xE2", "b"));
}

TEST(PunktWordsTest, SplitsCommasOffWhereAWordEnds) {
  EXPECT_THAT(PunktWords("a,b c,) d,-- e,... f,"),
              ElementsAre("a,b", "c", ",", ")", "d", ",", "--", "e", ",", "...",
                          "f", ","));
}

TEST(PunktTypeTest, IsInLowerCase) {
  EXPECT_EQ(PunktType("U.S."), "u.s.");
  EXPECT_EQ(PunktType("ΟΔΟΣ"), "οδος");  // with a final sigma
  EXPECT_EQ(PunktType("İ"), "i\u0307");
}

TEST(PunktTypeTest, IsOneForAllNumbers) {
  for (const char* number :
       {"1", "-1", ".5", ",5", "1,234.5-6.", "٣", "３.٥.", "-.5", "1.-"}) {
    EXPECT_EQ(PunktType(number), kPunktNumber) << number;
  }
  for (const char* word : {"-", ".", "", "1a", "--1", ".,5", "²", "½", "1 2"}) {
    EXPECT_NE(PunktType(word), kPunktNumber) << word;
  }
}

TEST(PunktWordClassTest, IsEllipsis) {
  EXPECT_TRUE(IsPunktEllipsis(".."));
  EXPECT_TRUE(IsPunktEllipsis("...."));
  for (const char* word : {".", "", "a..", "..a", ". . ."}) {
    EXPECT_FALSE(IsPunktEllipsis(word)) << word;
  }
}

TEST(PunktWordClassTest, IsInitial) {
  for (const char* word : {"S.", "é.", "_.", "日.", "ª.", "½.", "ⅷ.", "𝐀."}) {
    EXPECT_TRUE(IsPunktInitial(word)) << word;
  }
  for (const char* word : {"S", ".", "", "SS.", "S..", "5.", "٣.", "-.", "😀.",
                           "\u0301.", "‿.", "\xFF.", "e\u0301."}) {
    EXPECT_FALSE(IsPunktInitial(word)) << word;
  }
}

TEST(PunktWordClassTest, HasTheCaseOfItsFirstCharacter) {
  for (const char* word : {"A", "Éa", "İ", "ẞ", "Ⅷ", "Ⓐ", "𐐀"}) {
    EXPECT_TRUE(BeginsInUpperCase(word)) << word;
    EXPECT_FALSE(BeginsInLowerCase(word)) << word;
  }
  for (const char* word : {"a", "éA", "ı", "ß", "ⅷ", "ⓐ", "ª", "ʰ", "𐐨"}) {
    EXPECT_TRUE(BeginsInLowerCase(word)) << word;
    EXPECT_FALSE(BeginsInUpperCase(word)) << word;
  }
  for (const char* word : {"", "5A", "ǅ", "日", "\"A", "\xFF"}) {
    EXPECT_FALSE(BeginsInLowerCase(word)) << word;
    EXPECT_FALSE(BeginsInUpperCase(word)) << word;
  }
}

TEST(PunktWordClassTest, IsCloser) {
  for (const char32_t c : U")\";}]*:@'({[?!‘’“”«»") {
    EXPECT_EQ(IsPunktCloser(static_cast<CodePoint>(c)), c != U'\0');
  }
  for (const char32_t c : U".,-`#&„‚—…a ") {
    EXPECT_FALSE(IsPunktCloser(static_cast<CodePoint>(c)));
  }
  EXPECT_FALSE(IsPunktCloser(-1));
}

}  // namespace
}  // namespace etc
