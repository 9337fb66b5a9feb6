// VisitBasicWords against doc/formats.md 4.2 and 4.4: its examples, one case
// for each rule and their order, and the offsets. The two passes that are
// written by hand for the sake of offsets, lower-casing and decomposition, are
// compared with ICU's whole-string functions: lower-casing on every code point
// and on random words full of sigmas, NFD on random heaps of marks. Exact
// equality throughout.
#include "tasks/text/basic_tokenizer.h"

#include <unicode/locid.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <random>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/text/unicode.h"

namespace etc {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::IsEmpty;

constexpr BasicTokenizerOptions kCased{.lower_case = false};

std::string Utf8(CodePoint c) {
  std::string text;
  AppendUtf8(c, &text);
  return text;
}

// The parts of `text` that its words come from.
std::vector<std::string> SourceTexts(const std::string& text) {
  std::vector<std::string> sources;
  VisitBasicWords(text, {}, [&](const BasicWord& word) {
    const ByteRange source = word.Source();
    sources.push_back(text.substr(source.begin, source.end - source.begin));
  });
  return sources;
}

TEST(BasicTokenizerTest, GivesTheExamplesOfTheSpecification) {
  EXPECT_THAT(BasicWords("Héllo, Wörld!"),
              ElementsAre("hello", ",", "world", "!"));
  EXPECT_THAT(BasicWords("don't"), ElementsAre("don", "'", "t"));
  EXPECT_THAT(BasicWords("a日本b"), ElementsAre("a", "日", "本", "b"));
  EXPECT_THAT(BasicWords("U.S."), ElementsAre("u", ".", "s", "."));
  EXPECT_THAT(BasicWords("\u200B"), IsEmpty());
}

TEST(BasicTokenizerTest, KeepsOrStripsAccentsWhateverTheCase) {
  const std::string text = "MÖCHTE Mo\u0308chte";
  EXPECT_THAT(BasicWords(text), ElementsAre("mochte", "mochte"));
  EXPECT_THAT(BasicWords(text, {.strip_accents = false}),
              ElementsAre("möchte", "mo\u0308chte"));
  EXPECT_THAT(BasicWords(text, {.lower_case = false, .strip_accents = true}),
              ElementsAre("MOCHTE", "Mochte"));
  EXPECT_THAT(BasicWords(text, kCased), ElementsAre("MÖCHTE", "Mo\u0308chte"));
}

TEST(BasicTokenizerTest, KeepsIdeographsTogetherOnDemand) {
  const BasicTokenizerOptions together{.tokenize_chinese_chars = false};
  EXPECT_THAT(BasicWords("a中文b 中文。", together),
              ElementsAre("a中文b", "中文", "。"));
}

TEST(BasicTokenizerTest, KeepsControlsOnDemand) {
  const BasicTokenizerOptions uncleaned{.clean_text = false};
  EXPECT_THAT(BasicWords("a\x01z b\u200Bc", uncleaned),
              ElementsAre("a\x01z", "b\u200Bc"));
  // Controls that are white space split words.
  EXPECT_THAT(BasicWords("a\vb\u0085c\td", uncleaned),
              ElementsAre("a", "b", "c", "d"));
  // Bytes that are not UTF-8 go all the same.
  EXPECT_THAT(BasicWords("a\xFFz", uncleaned), ElementsAre("az"));
}

TEST(BasicTokenizerTest, NormalizesATextWithItsSources) {
  const NormalizedText text = NormalizeText("É\t中\u0001b", {});
  EXPECT_EQ(text.text, "e  中 b");
  const std::vector<ByteRange> sources = {{0, 2}, {2, 3}, {3, 3}, {3, 6},
                                          {3, 6}, {3, 6}, {6, 6}, {7, 8}};
  EXPECT_EQ(text.sources, sources);
}

TEST(BasicTokenizerTest, HasNothingToSayOfNothing) {
  EXPECT_THAT(BasicWords(""), IsEmpty());
  EXPECT_THAT(BasicWords(" \t\r\n\u00A0\u3000\u2028 "), IsEmpty());
  EXPECT_THAT(BasicWords("\u0301\u0301"), IsEmpty());
  EXPECT_THAT(BasicWords(absl::string_view("\0\x01\x7F", 3)), IsEmpty());
}

TEST(BasicTokenizerTest, DeletesControlsWithinWords) {
  const std::string text =
      absl::StrCat("a", std::string(1, '\0'), "b\x01", "c\x7F", "d\u00AD",
                   "e\uFEFF", "f\uFFFD", "g\u0085", "h\u200Di");
  EXPECT_THAT(BasicWords(text), ElementsAre("abcdefghi"));
  // Vertical tab and form feed are controls, not white space.
  EXPECT_THAT(BasicWords("a\vb\fc"), ElementsAre("abc"));
}

TEST(BasicTokenizerTest, SplitsAtUnicodeSpaces) {
  EXPECT_THAT(BasicWords("a\tb\nc\rd e\u00A0f\u3000g\u2028h\u2029i\u202Fj"),
              ElementsAre("a", "b", "c", "d", "e", "f", "g", "h", "i", "j"));
}

TEST(BasicTokenizerTest, IsolatesIdeographsAtTheBordersOfTheirRanges) {
  for (const CodePoint c :
       {0x4E00, 0x9FFF, 0x3400, 0x4DBF, 0x20000, 0x2A6DF, 0x2A700, 0x2B73F,
        0x2B740, 0x2B81F, 0x2B820, 0x2CEAF, 0xF900, 0xFAFF, 0x2F800, 0x2FA1F}) {
    EXPECT_EQ(
        BasicWords(absl::StrCat("a", Utf8(c), Utf8(c), "b"), kCased).size(), 4)
        << std::hex << c;
  }
  for (const CodePoint c : {0x4DC0, 0x33FF, 0x1FFFF, 0x2A6E0, 0x2CEB0, 0xF8FF,
                            0xFB00, 0x2F7FF, 0x2FA20}) {
    EXPECT_EQ(
        BasicWords(absl::StrCat("a", Utf8(c), Utf8(c), "b"), kCased).size(), 1)
        << std::hex << c;
  }
  // Neither kana nor Hangul.
  EXPECT_THAT(BasicWords("ひらがな カタ 한국", kCased),
              ElementsAre("ひらがな", "カタ", "한국"));
}

TEST(BasicTokenizerTest, SplitsAtPunctuationButNotAtSymbols) {
  for (int c = 0x21; c < 0x7F; ++c) {
    const bool alphanumeric =
        absl::ascii_isalnum(static_cast<unsigned char>(c));
    EXPECT_EQ(BasicWords(absl::StrCat("a", Utf8(c), "b")).size(),
              alphanumeric ? 1 : 3)
        << static_cast<char>(c);
    EXPECT_EQ(BasicWords(absl::StrCat("é", Utf8(c), "b")).size(),
              alphanumeric ? 1 : 3)
        << static_cast<char>(c);
  }
  EXPECT_THAT(BasicWords("a—b“c”…«d»¿e。"),
              ElementsAre("a", "—", "b", "“", "c", "”", "…", "«", "d", "»", "¿",
                          "e", "。"));
  EXPECT_THAT(BasicWords("5€ 20° a＋b"), ElementsAre("5€", "20°", "a＋b"));
}

TEST(BasicTokenizerTest, SplitsAtPunctuationThatAppearsInDecomposition) {
  // Greek question mark is a semicolon; "not less than" is "<" and a mark.
  EXPECT_THAT(BasicWords("α\u037Eβ"), ElementsAre("α", ";", "β"));
  EXPECT_THAT(BasicWords("a\u226Eb"), ElementsAre("a", "<", "b"));
  EXPECT_THAT(BasicWords("a\u226Eb", kCased), ElementsAre("a\u226Eb"));
}

TEST(BasicTokenizerTest, LowerCasesAndDropsAccents) {
  EXPECT_THAT(BasicWords("ÀÉÎÕÜ Ça Ñ ẞ"), ElementsAre("aeiou", "ca", "n", "ß"));
  EXPECT_THAT(BasicWords("\u0130stanbul"), ElementsAre("istanbul"));
  EXPECT_THAT(BasicWords("e\u0301\u0323"), ElementsAre("e"));
  // Conjoining jamo, not composed again.
  EXPECT_THAT(BasicWords("한"), ElementsAre("\u1112\u1161\u11AB"));
  // Spacing marks stay.
  EXPECT_THAT(BasicWords("का"), ElementsAre("का"));
}

TEST(BasicTokenizerTest, KeepsCaseAndAccentsOnDemand) {
  EXPECT_THAT(BasicWords("Héllo, e\u0301 İ ΑΣ 한", kCased),
              ElementsAre("Héllo", ",", "e\u0301", "İ", "ΑΣ", "한"));
}

TEST(BasicTokenizerTest, KnowsTheFinalSigma) {
  EXPECT_THAT(BasicWords("ΟΔΥΣΣΕΥΣ"), ElementsAre("οδυσσευς"));
  EXPECT_THAT(BasicWords("Σ ΑΣ ΣΑ"), ElementsAre("σ", "ας", "σα"));
  // Looks through the apostrophe and the full stop, which only then split, and
  // not past white space and ideographs.
  EXPECT_THAT(BasicWords("ΑΣ'Α ΑΣ.Α ΑΣ,Α"),
              ElementsAre("ασ", "'", "α", "ασ", ".", "α", "ας", ",", "α"));
  EXPECT_THAT(BasicWords("ΑΣ Α ΑΣ日Α"),
              ElementsAre("ας", "α", "ας", "日", "α"));
}

TEST(BasicTokenizerTest, LowerCasesEveryCodePointAsIcuDoes) {
  for (CodePoint c = 0x80; c <= 0x10FFFF; ++c) {
    if (U_IS_SURROGATE(c) || u_charType(c) == U_UNASSIGNED || IsBertSpace(c) ||
        IsBertDeleted(c) || c == 0x2028 || c == 0x2029) {
      continue;
    }
    UErrorCode status = U_ZERO_ERROR;
    icu::UnicodeString expected(static_cast<UChar32>(c));
    expected.toLower(icu::Locale::getRoot());
    expected =
        icu::Normalizer2::getNFDInstance(status)->normalize(expected, status);
    ASSERT_TRUE(U_SUCCESS(status));
    std::string expected_utf8;
    for (int32_t i = 0; i < expected.length(); i = expected.moveIndex32(i, 1)) {
      const UChar32 part = expected.char32At(i);
      if (u_charType(part) != U_NON_SPACING_MARK && !IsBertPunctuation(part)) {
        AppendUtf8(part, &expected_utf8);
      }
    }
    std::string words;
    for (const std::string& word : BasicWords(Utf8(c))) {
      int64_t at = 0;
      if (!IsBertPunctuation(NextCodePoint(word, &at))) {
        words += word;
      }
    }
    ASSERT_EQ(words, expected_utf8) << "U+" << std::hex << c;
  }
}

TEST(BasicTokenizerTest, LowerCasesAndDecomposesRandomWordsAsIcuDoes) {
  // Cased, uncased, case-ignorable (also cased ones), marks of several classes
  // (U+1D165 and U+302E are spacing ones), all without punctuation.
  const std::vector<CodePoint> alphabet = {
      0x03A3, 0x03A3, 0x03A3, 'A',    'b',    '1',     0x00C9,
      0x0130, 0x0345, 0x02B0, 0x0301, 0x0323, 0x1D165, 0x302E,
      0x00B8, 0x1E9B, 0xAC01, 0x05D0, 0x1F82, 0x00AA,  0x0390};
  std::mt19937 random(20240);
  for (int trial = 0; trial < 20000; ++trial) {
    std::string text;
    const size_t size = 1 + random() % 9;
    for (size_t i = 0; i < size; ++i) {
      AppendUtf8(alphabet[random() % alphabet.size()], &text);
    }
    UErrorCode status = U_ZERO_ERROR;
    icu::UnicodeString lower = icu::UnicodeString::fromUTF8(text);
    lower.toLower(icu::Locale::getRoot());
    lower = icu::Normalizer2::getNFDInstance(status)->normalize(lower, status);
    std::string expected;
    for (int32_t i = 0; i < lower.length(); i = lower.moveIndex32(i, 1)) {
      if (u_charType(lower.char32At(i)) != U_NON_SPACING_MARK) {
        AppendUtf8(lower.char32At(i), &expected);
      }
    }
    const std::vector<std::string> words = BasicWords(text);
    ASSERT_EQ(words.empty() ? "" : words[0], expected)
        << "in \"" << text << "\"";
  }
}

TEST(BasicTokenizerTest, DropsMaximalSubpartsOfIllFormedUtf8) {
  EXPECT_THAT(BasicWords("a\xFF"
                         "b"),
              ElementsAre("ab"));
  // Truncated, overlong, surrogate, too large: what follows stays.
  EXPECT_THAT(BasicWords("\xE2\x82x"), ElementsAre("x"));
  EXPECT_THAT(BasicWords("\xF0\x9F\x98"), IsEmpty());
  EXPECT_THAT(BasicWords("\xC0\xAFx\xE0\x80\xAFy"), ElementsAre("xy"));
  EXPECT_THAT(BasicWords("\xED\xA0\x80x"), ElementsAre("x"));
  EXPECT_THAT(BasicWords("\xF4\x90\x80\x80x"), ElementsAre("x"));
  EXPECT_EQ(CountIllFormedUtf8("a\xFF b\xE2\x82x \xC0\xAF"), 4);
  EXPECT_EQ(CountIllFormedUtf8("Héllo 日本 😀"), 0);
}

TEST(BasicTokenizerTest, RangesNameTheOriginalBytes) {
  EXPECT_THAT(
      SourceTexts("Héllo,\u00A0WÖRLD! \u0130s a日B"),
      ElementsAre("Héllo", ",", "WÖRLD", "!", "\u0130s", "a", "日", "B"));
  // A mark behind the base belongs to no word, one between letters is covered.
  EXPECT_THAT(SourceTexts("e\u0301"), ElementsAre("e"));
  EXPECT_THAT(SourceTexts("e\u0301e"), ElementsAre("e\u0301e"));
  EXPECT_THAT(SourceTexts("\uFEFFone\u200Btwo\xFF three"),
              ElementsAre("one\u200Btwo", "three"));
}

TEST(BasicTokenizerTest, RangesOfPartsCoverWhatTheyComeFrom) {
  const std::string text = "x 한\u0130";  // three jamo, "i"
  std::vector<std::pair<int64_t, int64_t>> ranges;
  VisitBasicWords(text, {}, [&](const BasicWord& word) {
    for (size_t at = 0; at < word.text().size();) {
      const size_t from = at;
      int64_t next = static_cast<int64_t>(at);
      NextCodePoint(word.text(), &next);
      at = static_cast<size_t>(next);
      const ByteRange source = word.Source(static_cast<int64_t>(from), next);
      ranges.emplace_back(source.begin, source.end);
    }
  });
  using Range = std::pair<int64_t, int64_t>;
  EXPECT_THAT(ranges, ElementsAreArray(std::vector<Range>{
                          {0, 1}, {2, 5}, {2, 5}, {2, 5}, {5, 7}}));
}

TEST(BasicTokenizerTest, RangesMoveWithReorderedMarks) {
  // Class 224, then class 216 (both spacing, so that they stay): swapped.
  const std::string text = "a\u302E\U0001D165";
  VisitBasicWords(text, {}, [&](const BasicWord& word) {
    EXPECT_EQ(word.text(), "a\U0001D165\u302E");
    EXPECT_EQ(word.Source(1, 5).begin, 4);
    EXPECT_EQ(word.Source(1, 5).end, 8);
    EXPECT_EQ(word.Source(5, 8).begin, 1);
    EXPECT_EQ(word.Source(5, 8).end, 4);
    EXPECT_EQ(word.Source().begin, 0);
    EXPECT_EQ(word.Source().end, 8);
  });
}

TEST(BasicTokenizerTest, TheAsciiPathAgreesWithTheGeneralOne) {
  // A deleted character in front of every word sends it the general way.
  std::mt19937 random(7);
  for (int trial = 0; trial < 2000; ++trial) {
    std::string ascii;
    std::string general;
    for (size_t i = 0; i < 40; ++i) {
      const char c =
          random() % 4 == 0 ? ' ' : static_cast<char>(0x21 + random() % 0x5E);
      ascii += c;
      general += c;
      general += c == ' ' ? "" : "\u200B";
    }
    for (const bool lower_case : {false, true}) {
      const BasicTokenizerOptions options{.lower_case = lower_case};
      ASSERT_EQ(BasicWords(ascii, options), BasicWords(general, options))
          << ascii;
    }
  }
}

}  // namespace
}  // namespace etc
