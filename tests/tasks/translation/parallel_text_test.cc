// Parallel text from files to pairs of ids with fairseq's dictionary, and one
// message for each mistake in the files, with its place.

#include "tasks/translation/parallel_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "etc/weights/tokenizer_files.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

class TranslationVocabularyTest : public testing::Test {
 protected:
  absl::StatusOr<std::shared_ptr<const TranslationVocabulary>> Load(
      const std::string& contents, const std::string& type = "dictionary") {
    return LoadTranslationVocabulary(
        {.type = type, .vocabulary = directory_.Write("dict.txt", contents)});
  }
  void ExpectMistake(const std::string& contents, const std::string& message) {
    const auto loaded = Load(contents);
    EXPECT_EQ(loaded.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(loaded.status().message()), HasSubstr(message));
  }

  TemporaryDirectory directory_;
};

TEST_F(TranslationVocabularyTest, ReadsFairseqsDictionary) {
  const auto loaded = Load("der 20\nHun@@ 7\nd 5\nmadeupword0000 0\n");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const TranslationVocabulary& vocabulary = **loaded;
  EXPECT_EQ(vocabulary.size(), 8);
  EXPECT_THAT(vocabulary.Encode("  der Hun@@ \td Katze"),
              ElementsAre(4, 5, 6, 3));
  EXPECT_EQ(vocabulary.Decode({0, 4, 1, 5, 6, 3, 2, 99}), "der Hund <unk>");
  EXPECT_TRUE(vocabulary.is_tokenized());
  EXPECT_EQ(vocabulary.TextOf(" der Hun@@\t d  Katze . "), "der Hund Katze .");
  EXPECT_EQ(vocabulary.TextOf("der Hun@@"), "der Hun");
  EXPECT_EQ(vocabulary.Piece(2), "</s>");
  EXPECT_EQ(vocabulary.Piece(8), "");
}

TEST_F(TranslationVocabularyTest, RefusesMistakesByTheirLine) {
  ExpectMistake("der 20\nHund\n", "dict.txt:2: ");
  ExpectMistake("der 20\nder 3\n",
                "dict.txt:2: the token \"der\" is in line 1");
  ExpectMistake("der 20\n</s> 3\n",
                "dict.txt:2: the token \"</s>\" has its id");
  ExpectMistake("der 20\n\xff 3\n", "dict.txt:2: a dictionary should be UTF-8");
  ExpectMistake("", "has no tokens");
  EXPECT_EQ(Load("der 20\n", "wordpiece").status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(LoadTranslationVocabulary({.type = "dictionary"}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(TranslationVocabularyTest, ReadsADictionaryBesideWeightsOrSaysWhyNot) {
  const std::string weights = directory_.Write("model.pt", "");
  EXPECT_EQ(*DictionaryBeside(weights), "");
  const std::string german = directory_.File("dict.de.txt");
  std::filesystem::create_symlink("nowhere", german);
  EXPECT_THAT(std::string(DictionaryBeside(weights).status().message()),
              HasSubstr("cannot open " + german));
  const std::string joint = directory_.File("dict.txt");
  std::filesystem::create_symlink("nowhere", joint);
  EXPECT_EQ(*DictionaryBeside(weights), joint);
  const std::string folder = directory_.File("missing");
  EXPECT_THAT(std::string(DictionaryBeside(folder + "/m").status().message()),
              HasSubstr("cannot list " + folder));
  // Takes, of two vocabularies, that of the type which is asked for.
  EXPECT_EQ(FindTranslationTokenizer(weights, "sentencepiece")->vocabulary,
            joint);
  const std::string pieces = directory_.Write("tokenizer.model", "");
  EXPECT_EQ(FindTranslationTokenizer(weights, "sentencepiece")->vocabulary,
            pieces);
  EXPECT_EQ(FindTranslationTokenizer(weights, "dictionary")->vocabulary, joint);
}

class ParallelTextTest : public testing::Test {
 protected:
  ParallelTextTest() {
    vocabulary_ = *LoadTranslationVocabulary(
        {.type = "dictionary",
         .vocabulary = directory_.Write("dict.txt", "a 9\nb 8\nc 7\n")});
  }
  absl::StatusOr<std::unique_ptr<ParallelText>> Open(
      const std::string& source, const std::string& target,
      const ParallelTextOptions& options = {}) {
    return ParallelText::Open(
        {.patterns = {directory_.Write("train.src", source),
                      directory_.Write("train.tgt", target)}},
        *vocabulary_, options);
  }
  void ExpectMistake(const std::string& source, const std::string& target,
                     const std::vector<std::string>& parts,
                     const ParallelTextOptions& options = {}) {
    const auto opened = Open(source, target, options);
    EXPECT_EQ(opened.status().code(), absl::StatusCode::kInvalidArgument);
    for (const std::string& part : parts) {
      EXPECT_THAT(std::string(opened.status().message()), HasSubstr(part));
    }
  }
  static TranslationExample PairAt(const ParallelText& text, int64_t i) {
    return static_cast<const TranslationExample&>(
        *text.Make(RequestForEvaluation(i))->front());
  }

  TemporaryDirectory directory_;
  std::shared_ptr<const TranslationVocabulary> vocabulary_;
};

TEST_F(ParallelTextTest, GivesPairsWithTheirEnds) {
  const auto text = Open("a b\nc\n", "b\na\xc2\xa0 c c");
  ASSERT_TRUE(text.ok()) << text.status();
  ASSERT_EQ((*text)->size(), 2);
  const TranslationExample first = PairAt(**text, 0);
  EXPECT_THAT(first.source, ElementsAre(4, 5, 2));
  EXPECT_THAT(first.target, ElementsAre(5, 2));
  EXPECT_EQ(first.num_tokens(), 5);
  // A no-break space ends a token, and LF alone ends a line.
  EXPECT_THAT(PairAt(**text, 1).target, ElementsAre(4, 6, 6, 2));
  EXPECT_THAT((*text)->Where(1), HasSubstr("train.src:2"));
  EXPECT_EQ((*text)->LeftOut(), "");
}

TEST_F(ParallelTextTest, SaysBothNumbersOfLines) {
  ExpectMistake("a\nb\nc\n", "a\nb\n",
                {"train.src and ",
                 "train.tgt should have the same number of "
                 "lines, but have 3 and 2"});
  const auto odd =
      ParallelText::Open({.patterns = {"train.src"}}, *vocabulary_, {});
  EXPECT_THAT(std::string(odd.status().message()),
              HasSubstr("in turns, but there are 1 names, the last train.src"));
}

TEST_F(ParallelTextTest, RefusesOrSkipsEmptyLinesByTheirPlace) {
  ExpectMistake("a\nb\n", "a\n \n",
                {"train.tgt:2: ", "is empty (data.on_bad_record \"skip\""});
  const auto text =
      Open("a\n\nb\n", "a\nb\n\n", {.on_bad_record = OnBadRecord::kSkip});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ((*text)->size(), 1);
  EXPECT_THAT(
      (*text)->descriptions(),
      ElementsAre(AllOf(HasSubstr(": 1 pair, skipped 2, the first: "),
                        HasSubstr("train.src:2: "), EndsWith("is empty"))));
}

TEST_F(ParallelTextTest, ReadsTheTargetsOfAllFilesAsTheyStandThere) {
  const DataRequest request = {
      .patterns = {directory_.Write("one.src", "a\n\nb\n"),
                   directory_.Write("one.tgt", "b  c\na\nc\n"),
                   directory_.Write("two.src", "c\na\n"),
                   directory_.Write("two.tgt", "x b\na\tc\n")}};
  const auto text = ParallelText::Open(request, *vocabulary_,
                                       {.on_bad_record = OnBadRecord::kSkip});
  ASSERT_TRUE(text.ok()) << text.status();
  const auto targets = (*text)->ReadTargets(request);
  ASSERT_TRUE(targets.ok()) << targets.status();
  EXPECT_THAT(*targets, ElementsAre("b  c", "c", "x b", "a\tc"));
}

TEST_F(ParallelTextTest, RefusesTextThatIsNotUtf8) {
  ExpectMistake("a\nb \xff\n", "a\nb\n",
                {"train.src:2: a sentence should be UTF-8"});
}

TEST_F(ParallelTextTest, CountsUnknownTokensAndWarnsOfMany) {
  std::string sources;
  std::string targets;
  for (int i = 0; i < 10; ++i) {
    sources += i == 0 ? "x b\n" : "a b\n";  // one in twenty
    targets += i == 0 ? "x y b\n" : "c b\n";
  }
  const auto text = Open(sources, targets);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(
      (*text)->descriptions(),
      ElementsAre(HasSubstr(": 10 pairs, unknown tokens 5.0 % / 9.5 %")));
  EXPECT_THAT((*text)->Warnings(),
              ElementsAre(HasSubstr("train.tgt: 9.5 % of the tokens are "
                                    "unknown to the vocabulary")));
  EXPECT_EQ((*text)->LeftOut(), "");
}

TEST_F(ParallelTextTest, LeavesOutLongSentencesAndCountsThem) {
  const auto text = Open("a a\na\na\n", "b\nb b\nb\n",
                         {.max_source_length = 2, .max_target_length = 2});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ((*text)->size(), 1);
  EXPECT_THAT((*text)->Where(0), HasSubstr("train.src:3"));
  EXPECT_THAT(
      (*text)->descriptions(),
      ElementsAre(HasSubstr(
          ": 1 pair, left out 2 of more than 2 source or 2 target tokens")));
  EXPECT_EQ((*text)->LeftOut(), (*text)->descriptions().front());
  ExpectMistake("a\na\n", "b\nb b b\n",
                {"train.tgt:2: ",
                 "at most 3 tokens (translation.max_tokens), "
                 "but has 4"},
                {.max_tokens = 3});
}

}  // namespace
}  // namespace etc
