// `realetc vocabulary`: what it prints and writes, and one clear message for
// each mistake. The pieces are those of sentencepiece_training_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/gzip_member.h"
#include "tests/support/realetc_program.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class VocabularyCommandTest : public RealetcTest {
 protected:
  static std::string Text() {
    std::string text;
    for (const char* subject : {"the cat", "a dog", "the bird", "a mouse"}) {
      for (const char* verb : {"sees", "hears", "follows", "loves"}) {
        absl::StrAppend(&text, subject, " ", verb, " the house.\n");
      }
    }
    return text;
  }

  void ExpectMistake(const std::string& arguments, const std::string& part,
                     int code = 1) {
    RealetcTest::ExpectMistake("vocabulary " + arguments, part, code);
    EXPECT_FALSE(std::filesystem::exists(model_));
  }

  const std::string text_ = directory_.Write("text.en", Text());
  const std::string model_ = directory_.File("pieces.model");
  const std::string output_ = " --output " + model_;
};

TEST_F(VocabularyCommandTest, WritesTheModelAndCountsPieces) {
  const std::string second = directory_.Write("text.de", "das haus sieht\n\n");
  const Result made = Run(
      absl::StrCat("vocabulary ", text_, " ", second, output_, " --size 50"));
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(made.err, "");
  EXPECT_EQ(Lines(made.out), 3) << made.out;
  EXPECT_THAT(made.out,
              AllOf(StartsWith(text_ + ": 16 lines, "),
                    HasSubstr(second + ": 2 lines, "), HasSubstr("unknown 0"),
                    HasSubstr("written: " + model_ + ", 50 pieces (bpe)\n")));
  // The same text gives the same vocabulary, packed too, and replaces it.
  const std::string bytes = Contents(model_);
  const std::string packed = directory_.Write("text.en.gz", GzipMember(Text()));
  const Result again = Run(
      absl::StrCat("vocabulary ", packed, " ", second, output_, " --size 50"));
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(Contents(model_), bytes);
  // Patterns of names, and the other type.
  const Result unigram =
      Run(absl::StrCat("vocabulary '", directory_.File("text.??"), "'", output_,
                       " --size 28 --type unigram --coverage 0.99"));
  EXPECT_EQ(unigram.code, 0) << unigram.err;
  EXPECT_THAT(unigram.out, HasSubstr("28 pieces (unigram)"));
  EXPECT_NE(Contents(model_), bytes);
  // A link stays one.
  const std::string link = directory_.File("link.model");
  std::filesystem::create_symlink(model_, link);
  EXPECT_EQ(Run(absl::StrCat("vocabulary ", text_, " ", second, " --output ",
                             link, " --size 50"))
                .code,
            0);
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(Contents(model_), bytes);
}

TEST_F(VocabularyCommandTest, MakesAVocabularyThatTokenizeTakes) {
  const std::string tokenize =
      absl::StrCat("tokenize ", text_, " --format bert --vocabulary ", model_,
                   " --output ", directory_.File("corpus.tokens"));
  const std::string vocabulary =
      absl::StrCat("vocabulary ", text_, output_, " --size 41");
  ASSERT_EQ(Run(vocabulary).code, 0);
  const Result maskless = Run(tokenize);
  EXPECT_EQ(maskless.code, 1);
  EXPECT_THAT(maskless.err, HasSubstr("`realetc vocabulary --mask`"));
  const Result made = Run(vocabulary + " --mask");
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr(", 41 pieces (bpe)"));
  const Result tokenized = Run(tokenize);
  EXPECT_EQ(tokenized.code, 0) << tokenized.err;
  EXPECT_THAT(tokenized.out, HasSubstr("unknown    0.000 %"));
}

TEST_F(VocabularyCommandTest, RefusesSizesThatTheTextDoesNotGive) {
  ExpectMistake(text_ + output_,
                "no vocabulary of 8000 pieces can be made of "
                "16 lines: ");
  ExpectMistake(text_ + output_ + " --type unigram --size 2000",
                "no vocabulary of 2000 pieces can be made of 16 lines: ");
  // Sizes below the number of characters.
  ExpectMistake(text_ + output_ + " --size 10",
                "no vocabulary of 10 pieces can be made of 16 lines: ");
  // By the command's own names.
  EXPECT_THAT(
      Run(absl::StrCat("vocabulary ", text_, output_, " --size 10")).err,
      AllOf(HasSubstr("--size"), Not(HasSubstr("character_coverage"))));
  for (const char* const size : {"4", "0", "-5", "1000001"}) {
    ExpectMistake(absl::StrCat(text_, output_, " --size ", size),
                  absl::StrCat("should be in [5, 1000000], but is ", size));
  }
  ExpectMistake(text_ + output_ + " --size many", "--size", 2);
}

TEST_F(VocabularyCommandTest, RefusesTextWithoutSentences) {
  for (const char* const text : {"", "\n\n\n", " \n\t\n"}) {
    ExpectMistake(
        absl::StrCat(directory_.Write("empty", text), output_, " --size 30"),
        "empty");
  }
  ExpectMistake(directory_.Write("bytes", "good\nb\xff\n") + output_,
                "bytes:2: should be UTF-8");
  ExpectMistake(directory_.Write("zero", std::string("a\0b\n", 4)) + output_,
                "zero:1: should not have U+2585 or U+0000");
  ExpectMistake(directory_.File("absent") + output_, "absent");
  ExpectMistake("'" + directory_.File("absent*") + "'" + output_, "absent*");
  ExpectMistake(output_, "FILES", 2);
}

TEST_F(VocabularyCommandTest, WarnsOfFilesThatAreNoText) {
  const std::string lines = directory_.Write(
      "a.jsonl", absl::StrCat("{\"text\": \"a dog\"}\n", Text()));
  const Result made =
      Run(absl::StrCat("vocabulary ", lines, output_, " --size 41"));
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(made.err, absl::StrCat("realetc: warning: ", lines,
                                   " looks like JSON lines, but is read as "
                                   "text\n"));
}

TEST_F(VocabularyCommandTest, RefusesBadOptionsBeforeItTrains) {
  ExpectMistake(text_, "--output", 2);
  ExpectMistake(text_ + " --output ''",
                "--output should name a file, but is empty");
  ExpectMistake(absl::StrCat(text_, " ", text_, output_),
                text_ + " is named twice");
  ExpectMistake(text_ + " --output " + text_,
                "--output should not replace what is read");
  ExpectMistake(text_ + " --output " + directory_.path(), "is a directory");
  ExpectMistake(text_ + " --output " + directory_.File("absent/model"),
                "is no directory");
  ExpectMistake(text_ + output_ + " --type words", "--type", 2);
  for (const char* const share : {"0.5", "1.5", "nan"}) {
    ExpectMistake(absl::StrCat(text_, output_, " --size 50 --coverage ", share),
                  "the character coverage should be in [0.98, 1]");
  }
  EXPECT_EQ(Contents(text_), Text());
}

}  // namespace
}  // namespace etc
