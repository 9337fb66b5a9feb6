// The head of HotpotQA: losses to the golden values of doc/hotpotqa.md 10.6,
// what takes part in softmax and sums by default and officially, and its start
// (traps 5, 6, 11 of doc/hotpotqa.md 11). Tolerance 1e-5: float32 sums of a few
// terms near 1, golden values with six decimals.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <memory>
#include <string>
#include <vector>

#include "tasks/hotpotqa/example.h"
#include "tasks/hotpotqa/task.h"
#include "tasks/task/benchmark_head.h"
#include "tests/support/initial_values.h"
#include "tests/tasks/hotpotqa/spec_record.h"

namespace etc {
namespace {

constexpr double kTolerance = 1e-5;

EtcConfig SmallConfig() {
  EtcConfig config;
  config.hidden_size = 6;
  return config;
}

// An example of text tokens only, with paragraphs for all global tokens.
std::shared_ptr<HotpotqaExample> PlainExample(size_t num_long,
                                              size_t num_global) {
  auto example = std::make_shared<HotpotqaExample>();
  example->long_token_ids.assign(num_long, 7);
  example->long_type_ids.assign(num_long, kHotpotqaSentenceType);
  example->global_token_ids.assign(num_global, 1);
  example->global_type_ids.assign(num_global, 0);
  example->global_paragraph_ids.assign(num_global, 0);
  example->supporting_facts.assign(num_global, 0);
  example->pattern = UnrestrictedPattern(
      static_cast<int64_t>(num_long), static_cast<int64_t>(num_global), 4, 2);
  return example;
}

double Loss(const HotpotqaOptions& options,
            const std::vector<torch::Tensor>& logits, const Batch& batch) {
  const auto head = MakeHotpotqaHead(SmallConfig(), options);
  return head->Losses(logits, batch).mean().item<double>();
}

class HotpotqaGoldenLossTest : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(DefaultAndOfficial, HotpotqaGoldenLossTest,
                         testing::Bool());

TEST_P(HotpotqaGoldenLossTest, IsThatOfTheSpec) {  // doc/hotpotqa.md 10.6
  const auto example = PlainExample(4, 2);
  example->supporting_facts = {1, 0};
  const Batch batch = MakeBatch({example});
  const torch::Tensor facts = torch::tensor({{0.0F, 2.0F}});
  EXPECT_NEAR(
      Loss({.official_compatibility = GetParam()},
           {facts, torch::zeros({1, 3}), torch::zeros({1, 2, 4})}, batch),
      1.672819, kTolerance);
  EXPECT_NEAR(
      Loss({.answer_encoding = HotpotqaAnswerEncoding::kBio,
            .official_compatibility = GetParam()},
           {facts, torch::zeros({1, 3}), torch::zeros({1, 3, 4})}, batch),
      2.771046, kTolerance);
}

Batch SpecBatch() {
  HotpotqaRecord short_record = HotpotqaSpecRecord();
  short_record.context.resize(1);
  const WordTokenizer tokenizer = HotpotqaSpecTokenizer();
  return MakeBatch({MakeHotpotqaExample(HotpotqaSpecRecord(), tokenizer),
                    MakeHotpotqaExample(short_record, tokenizer)});
}

std::vector<torch::Tensor> RandomLogits(const HotpotqaOptions& options,
                                        const Batch& batch) {
  torch::manual_seed(3);
  const auto head = MakeHotpotqaHead(SmallConfig(), options);
  return head->forward(
      {.long_output =
           torch::randn({batch.size(), batch.input.token_ids.size(1), 6}),
       .global_output = torch::randn(
           {batch.size(), batch.input.global_token_ids.size(1), 6})},
      batch);
}

TEST(HotpotqaHeadTest, GivesLogitsOfTheStatedShapes) {
  const Batch batch = SpecBatch();
  std::vector<std::vector<int64_t>> shapes;
  for (const torch::Tensor& tensor : RandomLogits({}, batch)) {
    shapes.push_back(tensor.sizes().vec());
  }
  using Shape = std::vector<int64_t>;
  EXPECT_THAT(shapes,
              testing::ElementsAre(Shape{2, 15}, Shape{2, 3}, Shape{2, 2, 29}));
  shapes.clear();
  for (const torch::Tensor& tensor :
       RandomLogits({.answer_encoding = HotpotqaAnswerEncoding::kBio}, batch)) {
    shapes.push_back(tensor.sizes().vec());
  }
  EXPECT_THAT(shapes,
              testing::ElementsAre(Shape{2, 15}, Shape{2, 3}, Shape{2, 3, 29}));
}

// doc/hotpotqa.md 11, trap 6
TEST(HotpotqaHeadTest, PointsAtTextAndClsOnlyUnlessOfficial) {
  const Batch batch = SpecBatch();
  const torch::Tensor begin = RandomLogits({}, batch)[2].select(1, 0);
  const torch::Tensor is_text =
      batch.input.segment_ids.eq(1).logical_or(batch.input.segment_ids.eq(2));
  EXPECT_TRUE(begin.le(-9999).equal(is_text.logical_not()));
  EXPECT_TRUE(is_text[1][0].item<bool>());    // [CLS]
  EXPECT_FALSE(is_text[1][3].item<bool>());   // question
  EXPECT_FALSE(is_text[1][20].item<bool>());  // padding
  EXPECT_FALSE(RandomLogits({.official_compatibility = true}, batch)[2]
                   .le(-9999)
                   .any()
                   .item<bool>());
}

// doc/hotpotqa.md 11, trap 5
TEST(HotpotqaHeadTest, SumsFactsOfTextOnlyUnlessOfficial) {
  const Batch batch = SpecBatch();
  for (const auto encoding :
       {HotpotqaAnswerEncoding::kSpan, HotpotqaAnswerEncoding::kBio}) {
    for (const bool official : {false, true}) {
      const HotpotqaOptions options{.answer_encoding = encoding,
                                    .official_compatibility = official};
      std::vector<torch::Tensor> logits = RandomLogits(options, batch);
      const double before = Loss(options, logits, batch);
      logits[0].select(1, 2) += 1;  // question
      logits[0][1][14] += 1;        // padding
      EXPECT_EQ(Loss(options, logits, batch) != before, official);
      logits = RandomLogits(options, batch);
      logits[0].select(1, 5) += 1;  // a paragraph
      EXPECT_NE(Loss(options, logits, batch), before);
    }
  }
}

TEST(HotpotqaHeadTest, IgnoresPaddingOfTheBatch) {
  const Batch both = SpecBatch();
  const Batch alone = MakeBatch({both.examples[1]});
  for (const auto encoding :
       {HotpotqaAnswerEncoding::kSpan, HotpotqaAnswerEncoding::kBio}) {
    const HotpotqaOptions options{.answer_encoding = encoding};
    const std::vector<torch::Tensor> logits = RandomLogits(options, both);
    std::vector<torch::Tensor> own;
    for (const torch::Tensor& tensor : logits) {
      own.push_back(tensor.slice(0, 1, 2));
    }
    own[0] = own[0].slice(1, 0, alone.input.global_token_ids.size(1));
    own[2] = own[2].slice(2, 0, alone.input.token_ids.size(1));
    const auto head = MakeHotpotqaHead(SmallConfig(), options);
    EXPECT_NEAR(head->Losses(logits, both)[1].item<double>(),
                head->Losses(own, alone)[0].item<double>(), kTolerance);
  }
}

// doc/hotpotqa.md 5
TEST(HotpotqaHeadTest, HasNoLossForATargetBeyondTheInput) {
  const auto example = PlainExample(4, 2);
  example->answer_spans = {{.first = 9, .last = 9}};
  const Batch batch = MakeBatch({example});
  // 2 ln 2 for the facts and ln 3 for the type.
  EXPECT_NEAR(Loss({.official_compatibility = true},
                   {torch::zeros({1, 2}), torch::zeros({1, 3}),
                    torch::zeros({1, 2, 4})},
                   batch),
              (2 * std::log(2.0) + std::log(3.0)) / 4, kTolerance);
}

// doc/hotpotqa.md 11, trap 11
TEST(HotpotqaHeadTest, StartsWithTheFixedInitializer) {
  EtcConfig config = SmallConfig();
  config.hidden_size = 4000;
  config.initializer_range = 0.5;
  torch::manual_seed(1);
  ExpectFixedInitialValues(*MakeHotpotqaHead(config, {}));
}

TEST(HotpotqaHeadTest, RefusesAnExampleWithoutAnswer) {
  const auto example = PlainExample(4, 2);
  example->has_answer = false;
  EXPECT_THROW(Loss({},
                    {torch::zeros({1, 2}), torch::zeros({1, 3}),
                     torch::zeros({1, 2, 4})},
                    MakeBatch({example})),
               c10::Error);
}

}  // namespace
}  // namespace etc
