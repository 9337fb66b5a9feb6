// Examples for people to read.

#include "tasks/pretrain/examples/example_text.h"

#include "gtest/gtest.h"
#include "tasks/pretrain/examples/packed_example.h"
#include "tests/tasks/pretrain/scripted_draws.h"
#include "tests/tasks/text/word_tokenizer.h"

namespace etc {
namespace {

WordTokenizer Words() {
  return WordTokenizer({"[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "it",
                        "purred", "dogs", "bark"});
}

TEST(DescribePretrainExampleTest, ShowsMasksAndHiddenSentences) {
  const WordTokenizer tokenizer = Words();
  const PackedExampleOptions options{
      .mlm = {.rate = 0.7,
              .mask_id = tokenizer.Id("[MASK]"),
              .vocab_size = static_cast<int32_t>(tokenizer.vocab_size())}};
  PackedExampleWriter writer(&options);
  const auto part = [&tokenizer](const std::vector<std::string>& sentences) {
    DocumentPart result;
    for (const std::string& sentence : sentences) {
      for (const Token& token : tokenizer.Encode(sentence)) {
        result.pieces.Add(token.id, false);
      }
      result.sentence_ends.push_back(result.pieces.size());
    }
    return result;
  };
  ScriptedDraws draws(nlohmann::json::parse(R"([
      ["uniform", 0], ["permutation", [1, 0]],
      ["permutation", [1, 2, 0]], ["uniform", 0.1],
      ["uniform", 0.9], ["uniform", 0.4],
      ["permutation", [0, 1]], ["uniform", 0.9], ["uniform", 0.6],
      ["integer", 0, 19, 17]])"));
  writer.Add(part({"the cat sat", "it purred"}), draws, draws);
  writer.Add(part({"dogs bark"}), draws, draws);
  const auto example = writer.Finish();
  EXPECT_EQ(draws.left(), 0);
  example->record_id = "sequence 3";
  EXPECT_EQ(DescribePretrainExample(*example, tokenizer),
            "sequence 3: 7 long tokens, 3 global tokens in 2 windows; 3 tokens "
            "masked, 1 sentence hidden\n"
            "masks: local radius 84, hard g2l mask, soft l2g mask\n"
            "window 0\n"
            "  0  the {[MASK] <- cat} {sat <- sat}\n"
            "  1  hidden: it purred\n"
            "window 1\n"
            "  2  {purred <- dogs} bark\n");
}

TEST(DescribePretrainExampleTest, ShowsPairs) {
  const WordTokenizer tokenizer = Words();
  const auto id = [&tokenizer](const char* word) { return tokenizer.Id(word); };
  PretrainExample example;
  example.record_id = "document at sentence 7, pair 0";
  example.global_token_ids = {id("[CLS]"), id("the"),    id("[MASK]"),
                              id("[SEP]"), id("purred"), id("[SEP]")};
  example.global_type_ids = {0, 0, 0, 0, 1, 1};
  example.masked_positions = {2};
  example.masked_labels = {id("cat")};
  const std::string pair =
      "\n  A  [CLS] the {[MASK] <- cat} [SEP]\n  B  purred [SEP]\n";
  const std::string heading =
      "document at sentence 7, pair 0: 6 tokens; 1 token masked";
  EXPECT_EQ(DescribePretrainExample(example, tokenizer), heading + pair);
  example.next_sentence = 1;
  EXPECT_EQ(DescribePretrainExample(example, tokenizer),
            heading + "; B is random" + pair);
  example.next_sentence = 0;
  EXPECT_EQ(DescribePretrainExample(example, tokenizer),
            heading + "; B follows A" + pair);
}

TEST(DescribePretrainExampleTest, ShowsSingleTexts) {
  const WordTokenizer tokenizer = Words();
  const auto id = [&tokenizer](const char* word) { return tokenizer.Id(word); };
  PretrainExample example;
  example.record_id = "document at sentence 7, text 0";
  example.global_token_ids = {id("[CLS]"), id("the"), id("cat"), id("[SEP]")};
  example.global_type_ids = {0, 0, 0, 0};
  EXPECT_EQ(DescribePretrainExample(example, tokenizer),
            "document at sentence 7, text 0: 4 tokens; 0 tokens masked\n"
            "  A  [CLS] the cat [SEP]\n");
}

}  // namespace
}  // namespace etc
