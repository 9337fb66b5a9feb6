// The pieces of a vocabulary that mask, and those that begin and end texts.

#include "tasks/pretrain/special_tokens.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/text/load_tokenizer.h"
#include "tasks/text/wordpiece_tokenizer.h"
#include "tests/tasks/text/word_tokenizer.h"

namespace etc {
namespace {

using ::testing::HasSubstr;

TEST(SpecialTokensTest, FindsThoseOfBert) {
  const auto tokenizer = ParseWordPieceTokenizer(
      "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\ncat\n", "vocab.txt");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto tokens = FindPairTokens(**tokenizer);
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ(tokens->cls_id, 2);
  EXPECT_EQ(tokens->separator_id, 3);
  EXPECT_EQ(tokens->mask_id, 4);
  EXPECT_EQ(tokens->vocab_size, 6);
}

TEST(SpecialTokensTest, FindsThoseOfRobertaAndNamedOnes) {
  const WordTokenizer roberta({"<s>", "</s>", "<mask>", "<unused_7>"});
  const auto tokens = FindPairTokens(roberta);
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ(tokens->cls_id, 10);
  EXPECT_EQ(tokens->separator_id, 11);
  EXPECT_EQ(tokens->mask_id, 12);
  EXPECT_EQ(FindSpecialTokens(roberta, "<unused_7>")->mask_id, 13);
}

TEST(SpecialTokensTest, FindsThoseThatFineTuningReads) {
  const WordTokenizer tokenizer(
      {"[CLS]", "[SEP]", "<begin>", "<end>", "[MASK]"},
      /*lower_cases=*/true, {.first = 12, .last = 13});
  const auto tokens = FindPairTokens(tokenizer);
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ(tokens->cls_id, FindSpecialIds(tokenizer).cls);
  EXPECT_EQ(tokens->separator_id, FindSpecialIds(tokenizer).separator);
  EXPECT_EQ(tokens->cls_id, 12);
  EXPECT_EQ(tokens->separator_id, 13);
  EXPECT_EQ(tokens->mask_id, 14);
}

TEST(SpecialTokensTest, NamesThePieceThatIsMissing) {
  const auto message = [](const auto& tokens) {
    EXPECT_EQ(tokens.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(tokens.status().message());
  };
  EXPECT_THAT(message(FindSpecialTokens(WordTokenizer({"[CLS]", "[SEP]"}))),
              HasSubstr("a piece [MASK] or <mask> to put in the place"));
  EXPECT_THAT(
      message(FindSpecialTokens(WordTokenizer({"[MASK]"}), "<unused_9>")),
      HasSubstr("a piece <unused_9> to put in the place"));
  EXPECT_TRUE(FindSpecialTokens(WordTokenizer({"[MASK]"})).ok());
  EXPECT_THAT(message(FindPairTokens(WordTokenizer({"[MASK]", "[SEP]"}))),
              HasSubstr("pieces [CLS] and [SEP], or <s> and </s>"));
  EXPECT_THAT(message(FindPairTokens(WordTokenizer({"[MASK]", "[CLS]"}))),
              HasSubstr("pieces [CLS] and [SEP], or <s> and </s>"));
}

}  // namespace
}  // namespace etc
