// The special pieces around one text and two, by hand: BERT's, RoBERTa's, which
// have two separators between texts, and templates with other numbers; and the
// room that they leave.
#include "tasks/inputs/text_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace etc {
namespace {

using testing::ElementsAre;

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

}  // namespace
}  // namespace etc
