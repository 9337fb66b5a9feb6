// The definition of attention against the official unit test
// (doc/model.md 12.5; its scores saturate, so it shows masks, ids and the order
// of axes only) and against hand-worked rows (doc/model.md 13.1: scaling, bias
// and mask). Tolerances are the digits given there.

#include "attention/backends/reference/dense_attention.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <vector>

#include "tests/support/gradient_check.h"
#include "tests/support/tensor_matchers.h"

namespace etc {
namespace {

torch::Tensor Doubles(const std::vector<double>& values) {
  return torch::tensor(values, torch::kFloat64);
}

// doc/model.md 12.5: two batches, three queries, four keys, two heads, d 3, 5
// values.
DenseAttentionInput OfficialInput() {
  const torch::Tensor query =  // [B, q, d], the same for both heads
      Doubles({1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 1, 0, 0})
          .reshape({2, 3, 3});
  const torch::Tensor key =  // [B, k, d] of head 0; head 1 has the negative
      Doubles({0, 0, 0, 99, 0, 0, 0, 0,  99, 0, 99, 0,
               0, 0, 0, 99, 0, 0, 0, 99, 0,  0, 0,  99})
          .reshape({2, 4, 3});
  const torch::Tensor signs =  // [B, N, dv]
      Doubles({1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, 1, 1, 1, 1, -1, 1, 1, 1, -1})
          .reshape({2, 2, 5});
  const torch::Tensor magnitude = Doubles({0.1, 0.2, 0.3, 0.4});
  DenseAttentionInput input;
  input.query = torch::stack({query, query}, 1);
  input.key = torch::stack({key, -key}, 1);
  input.value = magnitude.reshape({1, 1, 4, 1}) * signs.unsqueeze(2);
  input.mask = torch::ones({2, 3, 4}, torch::kBool);
  input.mask[1].select(1, 1).fill_(false);
  input.relative_ids = torch::stack({FromDigits({"1000", "0000", "0005"}),
                                     FromDigits({"0000", "0000", "0022"})});
  input.relative.embedding = torch::zeros({6, 2, 3}, torch::kFloat64);
  input.relative.embedding[1][1] = Doubles({-99, 0, 0});
  input.relative.embedding[2][0] = Doubles({-99, 0, 0});
  input.relative.embedding[2][1] = Doubles({99, 0, 0});
  input.relative.embedding[5][1] = Doubles({0, 0, -99});
  input.relative.bias = torch::zeros({6, 2}, torch::kFloat64);
  return input;
}

TEST(DenseAttentionTest, MatchesOfficialValues) {
  const torch::Tensor magnitude =  // [B, N, q]
      Doubles({0.2, 0.4, 0.3, 0.35, 0.2, 0.15, 0.35, 0.3, 0.1, 0.1, 0.25, 0.35})
          .reshape({2, 2, 3});
  const torch::Tensor signs =
      Doubles({1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, 1, 1, 1, 1, -1, 1, 1, 1, -1})
          .reshape({2, 2, 1, 5});
  const DenseAttentionInput input = OfficialInput();
  EXPECT_TRUE(IsClose(DenseAttention(input).context,
                      magnitude.unsqueeze(-1) * signs, /*atol=*/1e-6));
}

// doc/model.md 13.1: one query, three keys, d 4.
DenseAttentionInput WorkedRow() {
  DenseAttentionInput input;
  input.query = Doubles({1, 2, 3, 4}).reshape({1, 1, 1, 4});
  input.key = Doubles({.1, .2, .3, .4, -.1, 0, .1, 0, .5, -.5, .5, -.5})
                  .reshape({1, 1, 3, 4});
  input.value = Doubles({1, 2, 3}).reshape({1, 1, 3, 1});
  input.relative_ids = FromDigits({"012"}).unsqueeze(0);
  input.relative.embedding =
      Doubles({.1, 0, 0, 0, 0, .2, 0, 0, 0, 0, -.1, 0}).reshape({3, 1, 4});
  input.relative.bias = Doubles({.5, -.25, 1}).reshape({3, 1});
  return input;
}

torch::Tensor Mask(const std::string& digits) {
  return FromDigits({digits}).unsqueeze(0).to(torch::kBool);
}

TEST(DenseAttentionTest, ScalesRelativeScoresAndBiasToo) {
  DenseAttentionInput input = WorkedRow();
  input.mask = Mask("111");
  DenseAttentionOutput output = DenseAttention(input);
  EXPECT_TRUE(IsClose(output.scores.flatten(), Doubles({1.8, 0.175, -0.15}),
                      /*atol=*/1e-12));
  EXPECT_NEAR(output.context.item<double>(), 1.359517, 5e-7);

  input.mask = Mask("110");
  output = DenseAttention(input);
  EXPECT_NEAR(output.context.item<double>(), 1.164516, 5e-7);
  // Carried scores are not masked.
  EXPECT_TRUE(IsClose(output.scores.flatten(), Doubles({1.8, 0.175, -0.15}),
                      /*atol=*/1e-12));
}

TEST(DenseAttentionTest, GivesZeroWithoutAnyKeyAllowed) {
  // The official code averages over all keys here: 1.359517.
  DenseAttentionInput input = WorkedRow();
  input.mask = Mask("000");
  input.query.requires_grad_(true);
  const DenseAttentionOutput output = DenseAttention(input);
  EXPECT_EQ(output.context.item<double>(), 0.0);
  output.context.sum().backward();
  EXPECT_EQ(input.query.grad().abs().max().item<double>(), 0.0);
}

TEST(DenseAttentionTest, GivesForbiddenKeysNothingAtAll) {
  DenseAttentionInput input = WorkedRow();
  input.mask = Mask("101");
  const double before = DenseAttention(input).context.item<double>();
  input.value[0][0][1] = 1e30;
  input.key[0][0][1].fill_(1e6);
  EXPECT_EQ(DenseAttention(input).context.item<double>(), before);
}

TEST(DenseAttentionTest, AddsPreviousScoresAndDividesLogitsOnly) {
  DenseAttentionInput input = WorkedRow();
  input.previous = Doubles({0.2, 1.0, -0.5}).reshape({1, 1, 1, 3});
  input.divisor = 2.0;
  const DenseAttentionOutput output = DenseAttention(input);
  const torch::Tensor carried = Doubles({2.0, 1.175, -0.65});
  EXPECT_TRUE(IsClose(output.scores.flatten(), carried, /*atol=*/1e-12));
  const double expected =
      torch::softmax(carried / 2, 0).dot(Doubles({1, 2, 3})).item<double>();
  EXPECT_NEAR(output.context.item<double>(), expected, 1e-12);
}

TEST(DenseAttentionTest, HasTheRightGradients) {
  torch::manual_seed(1);
  const auto leaf = [](std::vector<int64_t> shape) {
    return torch::randn(shape, torch::kFloat64).requires_grad_(true);
  };
  DenseAttentionInput input;
  input.query = leaf({2, 2, 3, 4});
  input.key = leaf({2, 2, 5, 4});
  input.value = leaf({2, 2, 5, 3});
  input.previous = leaf({2, 2, 3, 5});
  input.relative = {.embedding = leaf({4, 2, 4}), .bias = leaf({4, 2})};
  input.relative_ids = torch::randint(0, 4, {2, 3, 5}, torch::kInt64);
  input.mask = torch::rand({2, 3, 5}) > 0.3;
  input.divisor = 3.0;
  const torch::Tensor context_weight =
      torch::randn({2, 2, 3, 3}, torch::kFloat64);
  const torch::Tensor score_weight =
      torch::randn({2, 2, 3, 5}, torch::kFloat64);
  EXPECT_TRUE(GradientsMatchDifferences(
      [&] {
        const DenseAttentionOutput output = DenseAttention(input);
        return (output.context * context_weight).sum() +
               (output.scores * score_weight).sin().sum();
      },
      {{"query", input.query},
       {"key", input.key},
       {"value", input.value},
       {"previous", input.previous},
       {"embedding", input.relative.embedding},
       {"bias", input.relative.bias}}));
}

TEST(DenseAttentionTest, DropsWeightsAfterTheSoftmax) {
  DenseAttentionInput input = WorkedRow();
  input.dropout_factors = Doubles({2, 0, 2}).reshape({1, 1, 1, 3});
  const double expected = torch::softmax(Doubles({1.8, 0.175, -0.15}), 0)
                              .dot(Doubles({2, 0, 6}))
                              .item<double>();
  EXPECT_NEAR(DenseAttention(input).context.item<double>(), expected, 1e-12);
}

TEST(DenseAttentionTest, RejectsOtherShapes) {
  DenseAttentionInput input = WorkedRow();
  input.previous = torch::zeros({1, 1, 3, 1}, torch::kFloat64);
  EXPECT_THROW(DenseAttention(input), c10::Error);
  input = WorkedRow();
  input.dropout_factors = torch::ones({1, 1, 3, 1}, torch::kFloat64);
  EXPECT_THROW(DenseAttention(input), c10::Error);
  input = WorkedRow();
  input.mask = Mask("11");
  EXPECT_THROW(DenseAttention(input), c10::Error);
  input = WorkedRow();
  input.relative = {};
  EXPECT_THROW(DenseAttention(input), c10::Error);
  input = WorkedRow();
  input.relative_ids[0][0][0] = 3;
  EXPECT_THROW(DenseAttention(input), c10::Error);
}

}  // namespace
}  // namespace etc
