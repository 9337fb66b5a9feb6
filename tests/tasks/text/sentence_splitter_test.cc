// SplitSentences: the situations of doc/wikihop.md 11.5 (Punkt's expected
// behaviour) as far as rules and a short list of abbreviations reach, one case
// for each known difference from Punkt, and the promises about ranges on random
// texts: no range is empty or begins or ends in white space, and only white
// space lies between them.
#include "tasks/text/sentence_splitter.h"

#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/text/unicode.h"

namespace etc {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> Sentences(const std::string& text) {
  std::vector<std::string> sentences;
  for (const ByteRange& range : SplitSentences(text)) {
    sentences.push_back(text.substr(range.begin, range.end - range.begin));
  }
  return sentences;
}

TEST(SentenceSplitterTest, SplitsNltksTestString) {
  EXPECT_THAT(Sentences("Good muffins cost $3.88\nin New York.  Please buy me\n"
                        "two of them.\n\nThanks."),
              ElementsAre("Good muffins cost $3.88\nin New York.",
                          "Please buy me\ntwo of them.", "Thanks."));
}

TEST(SentenceSplitterTest, HasNoSentenceWithoutText) {
  EXPECT_THAT(SplitSentences(""), IsEmpty());
  EXPECT_THAT(SplitSentences(" \r\n\t\u00A0\u2028 "), IsEmpty());
}

TEST(SentenceSplitterTest, TrimsWhiteSpace) {
  EXPECT_THAT(SplitSentences("  One.\r\n Two \n"),
              ElementsAre(ByteRange{2, 6}, ByteRange{9, 12}));
  EXPECT_THAT(Sentences("One.\u00A0Two.\u3000Three."),
              ElementsAre("One.", "Two.", "Three."));
}

TEST(SentenceSplitterTest, DoesNotBreakAfterTitlesAndInitials) {
  EXPECT_THAT(Sentences("He met Mr. Smith and (Dr. Roe) in St. Louis."),
              testing::SizeIs(1));
  EXPECT_THAT(Sentences("Johann S. Bach, J. R. R. Tolkien and J.S. Mill."),
              testing::SizeIs(1));
  EXPECT_THAT(Sentences("The U.S. Army bought Acme Inc. Stocks in vain."),
              testing::SizeIs(1));
  EXPECT_THAT(Sentences("Lt.-Gen. Roe was born c. 1890, on Jan. 5, ca. Noon."),
              testing::SizeIs(1));
  EXPECT_THAT(Sentences("See No. 5, vol. 3 and fig. 2."), testing::SizeIs(1));
}

TEST(SentenceSplitterTest, BreaksAfterAbbreviationsBeforeUsualBeginnings) {
  EXPECT_THAT(Sentences("He left the U.S. The end. It was 3 p.m. He slept."),
              ElementsAre("He left the U.S.", "The end.", "It was 3 p.m.",
                          "He slept."));
  EXPECT_THAT(Sentences("Bought by Acme Inc. \"In vain\"."),
              ElementsAre("Bought by Acme Inc.", "\"In vain\"."));
}

TEST(SentenceSplitterTest, TakesNoWordForAnAbbreviation) {
  // ICU's "en@ss=standard" sees the initials "O." and "G." here.
  EXPECT_THAT(Sentences("He likes Üst. Bob likes 1st. Pop."),
              testing::SizeIs(3));
  EXPECT_THAT(Sentences("It joined NATO. Rags. He said no. Bob left RAG. Off."),
              ElementsAre("It joined NATO.", "Rags.", "He said no.",
                          "Bob left RAG.", "Off."));
}

TEST(SentenceSplitterTest, LeavesClosersWithTheSentenceBefore) {
  EXPECT_THAT(
      Sentences("He said \"No.\" (She left.) 'Oh?' [Why!] End."),
      ElementsAre("He said \"No.\"", "(She left.)", "'Oh?'", "[Why!]", "End."));
  EXPECT_THAT(Sentences("“Gone.” She left.)  \n Yes."),
              ElementsAre("“Gone.”", "She left.)", "Yes."));
}

TEST(SentenceSplitterTest, BeginsASentenceAtABracketBehindTheMark) {
  EXPECT_THAT(Sentences("The end.[1] Again."),
              ElementsAre("The end.", "[1] Again."));
  EXPECT_THAT(Sentences("The end.(A note.)"),
              ElementsAre("The end.", "(A note.)"));
}

TEST(SentenceSplitterTest, EndsNoSentenceAtALineEnd) {
  for (const char* line_end : {"\n", "\r\n", "\n\n", "\u0085", "\u2029"}) {
    EXPECT_THAT(Sentences(absl::StrCat("A title", line_end, "And text")),
                testing::SizeIs(1));
  }
}

TEST(SentenceSplitterTest, SplitsOtherScriptsAtTheirMarks) {
  EXPECT_THAT(Sentences("これは文です。次です！"),
              ElementsAre("これは文です。", "次です！"));
}

TEST(SentenceSplitterTest, DiffersFromPunktAsDocumented) {
  EXPECT_THAT(Sentences("words. i am"), ElementsAre("words. i am"));
  EXPECT_THAT(Sentences("The end.\"He left."),
              ElementsAre("The end.\"", "He left."));
  EXPECT_THAT(Sentences("Wait... What?"), ElementsAre("Wait...", "What?"));
}

TEST(SentenceSplitterTest, KeepsItsPromisesOnAnyBytes) {
  const std::vector<std::string> parts = {"Mr.",     "end.",
                                          "[",       "(",
                                          ")",       "\"",
                                          ".",       "!",
                                          "? ",      " ",
                                          "\n",      "\u2029",
                                          "A",       "the",
                                          "The",     "日。",
                                          "\xFF",    "\xE2\x80",
                                          "\u00A0",  "5",
                                          "U.S.",    std::string(1, '\0'),
                                          "e\u0301", "😀",
                                          "-",       "“",
                                          "”"};
  std::mt19937 random(17);
  const auto is_space = [](CodePoint c) {
    return c == 0x85 || c == 0x2028 || c == 0x2029 || IsBertSpace(c);
  };
  for (int trial = 0; trial < 20000; ++trial) {
    std::string text;
    for (size_t i = random() % 16; i > 0; --i) {
      text += parts[random() % parts.size()];
    }
    int64_t at = 0;
    const auto expect_space_to = [&](int64_t end) {
      while (at < end) {
        ASSERT_TRUE(is_space(NextCodePoint(text, &at))) << text;
      }
      ASSERT_EQ(at, end) << text;
    };
    for (const ByteRange& range : SplitSentences(text)) {
      ASSERT_LT(range.begin, range.end) << text;
      expect_space_to(range.begin);
      int64_t first = range.begin;
      ASSERT_FALSE(is_space(NextCodePoint(text, &first))) << text;
      int64_t last = range.end;
      ASSERT_FALSE(is_space(PreviousCodePoint(text, &last))) << text;
      at = range.end;
    }
    expect_space_to(static_cast<int64_t>(text.size()));
  }
}

TEST(SentenceSplitterTest, SplitsALongTextInTimeLinearInItsLength) {
  std::string text;
  for (int i = 0; i < 20000; ++i) {
    text += "He left. ";
  }
  EXPECT_EQ(SplitSentences(text).size(), 20000);
  EXPECT_EQ(SplitSentences(std::string(300000, '(')).size(), 1);
  EXPECT_EQ(SplitSentences(std::string(300000, '.')).size(), 1);
  EXPECT_EQ(SplitSentences(std::string(300000, '\xFF')).size(), 1);
}

TEST(SentenceSplitterTest, IsSharedByThreads) {
  const std::string text = "One. Two by Mr. X. Three!";
  const std::vector<ByteRange> expected = SplitSentences(text);
  std::vector<std::vector<ByteRange>> split(4);
  std::vector<std::thread> threads;
  for (auto& of_thread : split) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        of_thread = SplitSentences(text);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_THAT(split, testing::Each(expected));
}

}  // namespace
}  // namespace etc
