// Texts of predicted spans: the official projection to the golden values of
// doc/hotpotqa.md 10.4, and the default, which gives back the record's own
// bytes whatever characters it has.

#include "tasks/hotpotqa/answer_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "tasks/hotpotqa/task.h"
#include "tasks/text/answer_projection.h"
#include "tasks/text/load_tokenizer.h"
#include "tests/support/shared_data.h"
#include "tests/tasks/hotpotqa/spec_record.h"

namespace etc {
namespace {

TEST(ProjectAnswerTest, MatchesTheGoldenValues) {  // doc/hotpotqa.md 10.4
  EXPECT_EQ(ProjectAnswer("steve smith", "Steve Smith's"), "Steve Smith");
  EXPECT_EQ(ProjectAnswer("jose", "Jos\u00e9,"), "Jos\u00e9");
  EXPECT_EQ(ProjectAnswer("jose", "Jose\u0301,"), "Jose\u0301,");
  EXPECT_EQ(ProjectAnswer("1895", "(1895-1943)."), "1895");
  EXPECT_EQ(ProjectAnswer("u . s .", "U.S."), "U.S.");
  EXPECT_EQ(ProjectAnswer("[UNK]", "any text"), "any text");
  EXPECT_EQ(ProjectAnswer("", "abc"), "abc");
}

TEST(ProjectAnswerTest, TakesTheFirstOccurrence) {
  EXPECT_EQ(ProjectAnswer("ab", "xAb Ab"), "Ab");
  EXPECT_EQ(ProjectAnswer("b c", "a B  C d"), "B  C");
}

// doc/hotpotqa.md 10.5
TEST(OfficialAnswerTextTest, CutsPunctuationOffTheUnigrams) {
  const WordTokenizer tokenizer = HotpotqaSpecTokenizer();
  const auto example = MakeHotpotqaExample(HotpotqaSpecRecord(), tokenizer);
  EXPECT_EQ(OfficialAnswerText(*example, {22, 23}, TokenizerKind::kWordPiece,
                               tokenizer),
            "Jane Roe");
  EXPECT_EQ(OfficialAnswerText(*example, {5, 6}, TokenizerKind::kWordPiece,
                               tokenizer),
            "Jane Roe");
  EXPECT_EQ(OfficialAnswerText(*example, {22, 24}, TokenizerKind::kWordPiece,
                               tokenizer),
            "Jane Roe.");
}

TEST(OfficialAnswerTextTest, IsWhatThePiecesSpellWithSentencePiece) {
  const WordTokenizer tokenizer = HotpotqaSpecTokenizer();
  const auto example = MakeHotpotqaExample(
      HotpotqaSpecRecord(), tokenizer,
      {.input = {.tokenizer_kind = TokenizerKind::kSentencePiece}});
  EXPECT_EQ(OfficialAnswerText(*example, {22, 23},
                               TokenizerKind::kSentencePiece, tokenizer),
            "janeroe");
}

// The text of the one sentence's pieces [first, last], counted from 0.
std::string OriginalText(const std::string& sentence, PieceSpan span) {
  const WordTokenizer tokenizer = HotpotqaSpecTokenizer();
  const auto example = MakeHotpotqaExample(
      {.id = "q", .context = {{"t", {sentence}}}}, tokenizer);
  return OriginalAnswerText(*example, {span.first + 2, span.last + 2});
}

TEST(OriginalAnswerTextTest, GivesTheBytesOfTheRecord) {
  EXPECT_EQ(OriginalText("Steve Smith's", {0, 1}), "Steve Smith");
  EXPECT_EQ(OriginalText("(1895-1943).", {1, 1}), "1895");
  EXPECT_EQ(OriginalText("x  Jose\u0301, b", {1, 1}), "Jose\u0301");
  EXPECT_EQ(OriginalText("a \U0001f600\u200d\U0001f525 b", {1, 2}),
            "\U0001f600\u200d\U0001f525 b");
  EXPECT_EQ(OriginalText(std::string("a\0 b", 4), {0, 2}),
            std::string("a\0 b", 4));
  EXPECT_EQ(OriginalText("one\r\ntwo", {0, 1}), "one\r\ntwo");
  EXPECT_EQ(OriginalText("\ufeffone two", {1, 1}), "two");
}

TEST(OriginalAnswerTextTest, GivesTheBytesOfTheRecordWithBertsVocabulary) {
  ETC_SHARED_DATA_OR_SKIP(const std::string vocabulary,
                          "data/vocab/bert-uncased/vocab.txt");
  const auto tokenizer = LoadTokenizer(vocabulary);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  for (const std::string answer :
       {"Jos\u00e9", "Jose\u0301", "U.S.", "1895", "\u00c5ngstr\u00f6m",
        "\u6771\u4eac", "\U0001f600", "\u00bd", "\ufb01re", "\u0130zmir",
        "caf\u00e9-bar", "O'Neil", "na\u00efve\u2014so"}) {
    for (const std::string before : {"", "In (", " \u201c", "x, "}) {
      const std::string text = absl::StrCat(before, answer, ", and more.");
      const auto example = MakeHotpotqaExample({.id = "q",
                                                .context = {{"t", {text}}},
                                                .answer = answer,
                                                .supporting_facts = {{"t", 0}}},
                                               **tokenizer);
      ASSERT_FALSE(example->answer_spans.empty()) << text;
      EXPECT_EQ(OriginalAnswerText(*example, example->target_span()), answer)
          << text;
    }
  }
}

// A paragraph whose first sentence has ten pieces and does not fit, so that the
// second one, with three pieces at 3 to 5, has the official number 0.
std::shared_ptr<const HotpotqaExample> Truncated(const std::string& first,
                                                 const std::string& second) {
  return MakeHotpotqaExample(
      {.id = "q", .question = "who", .context = {{"acme", {first, second}}}},
      HotpotqaSpecTokenizer(),
      {.input = {.max_long_length = 8}, .official_compatibility = true});
}

constexpr char kTenMarks[] = "??????????";

TEST(OriginalAnswerTextTest, IsThatOfItsSentenceWhateverItsNumber) {
  const auto example = Truncated(kTenMarks, "nothing here jane");
  EXPECT_EQ(OriginalAnswerText(*example, {5, 5}), "jane");
}

// SentencePiece, which spells what it does not know "<unk>".
class UnkTokenizer : public WordTokenizer {
 public:
  UnkTokenizer() : WordTokenizer(HotpotqaSpecTokenizer()) {}
  std::string Piece(int32_t id) const override {
    const std::string piece = WordTokenizer::Piece(id);
    return piece == "[UNK]" ? "<unk>" : "\u2581" + piece;
  }
};

TEST(OfficialAnswerTextTest, KnowsWhatSentencePieceDoesNotKnow) {
  const auto example = Truncated(kTenMarks, "nothing here zyx");
  EXPECT_EQ(OfficialAnswerText(*example, {4, 5}, TokenizerKind::kSentencePiece,
                               UnkTokenizer()),
            "herezyx");
}

TEST(OfficialAnswerTextTest, TakesUnigramsOfTheSentenceWithTheNumber) {
  // doc/hotpotqa.md 2.5, 6.1: what the official program does, right or wrong.
  const WordTokenizer tokenizer = HotpotqaSpecTokenizer();
  const auto text = [&](const std::string& first) {
    return OfficialAnswerText(*Truncated(first, "nothing here jane"), {4, 5},
                              TokenizerKind::kWordPiece, tokenizer);
  };
  EXPECT_EQ(text("? ? ?a ??????"), "? ?a");
  EXPECT_EQ(text("????? ?????"), "?????");
  EXPECT_EQ(text(kTenMarks), "");
}

}  // namespace
}  // namespace etc
