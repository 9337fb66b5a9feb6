// The special pieces around one text and two, by hand: BERT's, RoBERTa's, which
// have two separators between texts, and templates with other numbers; and the
// room that they leave. Words and sentences behind blanks, with tokenizers that
// spell them otherwise than at the beginning of a text.
#include "tasks/inputs/text_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tasks/text/huggingface/huggingface_tokenizer.h"
#include "tests/tasks/inputs/byte_level_tokenizer.h"
#include "tests/tasks/text/word_tokenizer.h"

namespace etc {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

InputOptions Bert() {
  return {.max_global_length = 9, .has_long_tokens = false};
}

TextMarks One() { return {.cls = 10, .separator = 11}; }

TextMarks Marks(std::vector<int32_t> between) {
  return {.cls = 10, .separator = 11, .between = std::move(between)};
}

Example Pair(const TextMarks& marks, const InputOptions& input) {
  Example example;
  WriteTexts({.ids = {1, 2}}, TextPieces{.ids = {3}}, marks, input, &example);
  return example;
}

TEST(TextInputTest, PutsTheMarksOfItsTokenizerBetweenTexts) {
  EXPECT_THAT(Pair(One(), Bert()).global_token_ids,
              ElementsAre(10, 1, 2, 11, 3, 11));
  EXPECT_THAT(Pair(Marks({11}), Bert()).global_token_ids,
              ElementsAre(10, 1, 2, 11, 3, 11));
  const Example roberta = Pair(Marks({11, 11}), Bert());
  EXPECT_THAT(roberta.global_token_ids, ElementsAre(10, 1, 2, 11, 11, 3, 11));
  EXPECT_THAT(roberta.global_type_ids, ElementsAre(0, 0, 0, 0, 0, 1, 1));
  EXPECT_THAT(Pair(Marks({11, 12, 13}), Bert()).global_token_ids,
              ElementsAre(10, 1, 2, 11, 12, 13, 3, 11));
  EXPECT_THAT(Pair(Marks({}), Bert()).global_token_ids,
              ElementsAre(10, 1, 2, 3, 11));
  InputOptions one_type = Bert();
  one_type.has_second_type = false;
  EXPECT_THAT(Pair(Marks({11, 11}), one_type).global_type_ids,
              ElementsAre(0, 0, 0, 0, 0, 0, 0));
}

TEST(TextInputTest, PutsThemBetweenLongTokensToo) {
  const Example etc =
      Pair(Marks({11, 11}), {.max_long_length = 9, .max_global_length = 1});
  EXPECT_THAT(etc.long_token_ids, ElementsAre(10, 1, 2, 11, 11, 3, 11));
  EXPECT_THAT(etc.long_type_ids, ElementsAre(1, 1, 1, 1, 1, 2, 2));
  EXPECT_THAT(etc.global_token_ids, ElementsAre(kWholeTextToken));
}

TEST(TextInputTest, HasOneSeparatorBehindOneText) {
  Example example;
  WriteTexts({.ids = {1, 2}}, std::nullopt, Marks({11, 11}), Bert(), &example);
  EXPECT_THAT(example.global_token_ids, ElementsAre(10, 1, 2, 11));
}

TEST(TextInputTest, LeavesRoomForThem) {
  EXPECT_EQ(RoomForPieces(Bert(), One(), /*two_texts=*/true), 6);
  EXPECT_EQ(RoomForPieces(Bert(), Marks({11, 11}), /*two_texts=*/true), 5);
  EXPECT_EQ(RoomForPieces(Bert(), Marks({}), /*two_texts=*/true), 7);
  EXPECT_EQ(RoomForPieces(Bert(), Marks({11, 11}), /*two_texts=*/false), 7);
  EXPECT_EQ(LengthsOfTexts(Bert()).global_tokens, 3);
  EXPECT_STREQ(LengthsOfTexts(Bert()).global_use, "[CLS] and two [SEP]");
  EXPECT_EQ(LengthsOfTexts(Bert(), Marks({11, 11})).global_tokens, 4);
  EXPECT_EQ(LengthsOfTexts({}, Marks({11, 11})).long_tokens, 4);
  EXPECT_EQ(LengthsOfTexts(Bert(), Marks({})).global_tokens, 3);
}

// Pieces as "spelling begin-end".
std::vector<std::string> Spelt(const std::vector<Token>& pieces,
                               const Tokenizer& tokenizer) {
  std::vector<std::string> spelt;
  for (const Token& piece : pieces) {
    spelt.push_back(absl::StrCat(tokenizer.Piece(piece.id), " ", piece.begin,
                                 "-", piece.end));
  }
  return spelt;
}

TEST(EncodeBehindBlankTest, HasThePiecesOfAWordWithinAText) {
  const auto tokenizer = ByteLevelTokenizer({"the", "Ġthe"});
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_TRUE(tokenizer->begins_words_with_blanks());
  const auto pieces = [&](const std::string& word) {
    return Spelt(EncodeBehindBlank(word, *tokenizer), *tokenizer);
  };
  EXPECT_THAT(pieces("the"), ElementsAre("Ġthe 0-3"));
  EXPECT_THAT(pieces(" the"), ElementsAre("Ġthe 1-4"));
  // The blank has a piece of its own, which stands for nothing.
  EXPECT_THAT(pieces("ab"), ElementsAre("Ġ 0-0", "a 0-1", "b 1-2"));
  EXPECT_THAT(pieces(""), IsEmpty());
}

TEST(EncodeBehindBlankTest, ChangesNothingWhereWordsNeedNoBlank) {
  const auto prefixed =
      ByteLevelTokenizer({"the", "Ġthe"}, /*add_prefix_space=*/true);
  ASSERT_NE(prefixed, nullptr);
  EXPECT_FALSE(prefixed->begins_words_with_blanks());
  EXPECT_THAT(Spelt(EncodeBehindBlank("the", *prefixed), *prefixed),
              ElementsAre("Ġthe 0-3"));
  const WordTokenizer words({"the"});
  EXPECT_FALSE(words.begins_words_with_blanks());
  EXPECT_THAT(Spelt(EncodeBehindBlank("the", words), words),
              ElementsAre("the 0-3"));
}

TEST(EncodeBehindBlankTest, KnowsMetaspaceByItsScheme) {
  for (const std::string scheme : {"always", "first", "never"}) {
    const nlohmann::json file = {
        {"pre_tokenizer", {{"type", "Metaspace"}, {"prepend_scheme", scheme}}},
        {"model",
         {{"type", "WordLevel"},
          {"unk_token", "[UNK]"},
          {"vocab", {{"[UNK]", 0}, {"the", 1}, {"▁the", 2}}}}}};
    const auto tokenizer =
        ParseHuggingFaceTokenizer(file.dump(), "tokenizer.json");
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    EXPECT_EQ((*tokenizer)->begins_words_with_blanks(), scheme == "never");
    EXPECT_THAT(Spelt(EncodeBehindBlank("the", **tokenizer), **tokenizer),
                ElementsAre("▁the 0-3"))
        << scheme;
  }
}

TEST(AppendTextTest, BeginsALaterSentenceAsBehindItsBlank) {
  const auto tokenizer = ByteLevelTokenizer({"It", "ĠIt"});
  ASSERT_NE(tokenizer, nullptr);
  InputOptions etc;
  etc.split_sentences = SplitAtFullStops;
  SplitText split;
  AppendText("It. It.It.", *tokenizer, etc, &split);
  EXPECT_THAT(
      Spelt(split.tokens, *tokenizer),
      ElementsAre("It 0-2", ". 2-3", "ĠIt 4-6", ". 6-7", "It 7-9", ". 9-10"));
  EXPECT_THAT(split.sentences, ElementsAre(0, 0, 1, 1, 2, 2));
}

}  // namespace
}  // namespace etc
