// The number of layers travels with the scores that layers carry: `mean`
// divides by it although no caller states it, in each storage and backend.
// Expected values are written out, in float64: softmax(S_n / (n + 1)) V with
// S_n = S_{n-1} + Q K^T / sqrt(d). 1e-12; kernels, in float32, 1e-6.

#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <vector>

#include "attention/dot_product_attention.h"
#include "attention/global_local_attention.h"
#include "tests/support/tensor_matchers.h"

namespace etc {
namespace {

constexpr int64_t kLayers = 4;

TEST(LayerCountTest, MeanOfKeyScoresDividesByTheLayersThatWereSummed) {
  torch::manual_seed(1);
  for (const ScoreStorage storage :
       {ScoreStorage::kStore, ScoreStorage::kReverse,
        ScoreStorage::kRecompute}) {
    for (const auto implementation : {AttentionImplementation::kReference,
                                      AttentionImplementation::kBlocked,
                                      AttentionImplementation::kKernel}) {
      torch::Tensor sum = torch::zeros({}, torch::kFloat64);
      DotProductAttentionInput input;
      input.pattern = AllKeysPattern(
          {.queries = 5, .keys = 6, .lengths = {{5, 6}, {5, 6}}});
      input.residual.mode = ResidualAttention::kMean;
      input.residual.storage = storage;
      for (int64_t layer = 0; layer < kLayers; ++layer) {
        input.query = torch::randn({2, 3, 5, 4});
        input.key = torch::randn({2, 3, 6, 4});
        input.value = torch::randn({2, 3, 6, 4});
        sum = sum +
              input.query.to(torch::kFloat64)
                      .matmul(input.key.to(torch::kFloat64).transpose(-2, -1)) /
                  2.0;
        const DotProductAttentionOutput output =
            DotProductAttention(input, implementation);
        EXPECT_EQ(output.scores.layers, layer + 1);
        const torch::Tensor expected =
            torch::softmax(sum / static_cast<double>(layer + 1), -1)
                .matmul(input.value.to(torch::kFloat64));
        EXPECT_TRUE(IsClose(output.context, expected, 1e-6)) << layer;
        input.previous = output.scores;
      }
    }
  }
}

// Equal layers: the mean of their scores is that of one.
TEST(LayerCountTest, MeanOfALayerRepeatedIsTheLayer) {
  torch::manual_seed(2);
  GlobalLocalAttention attention(
      GlobalLocalAttentionOptions{.long_hidden_size = 6,
                                  .global_hidden_size = 6,
                                  .num_heads = 2,
                                  .head_size = 3,
                                  .local_radius = 2,
                                  .dropout = 0.0,
                                  .initializer_range = 0.5});
  const torch::NoGradGuard no_grad;
  const torch::Tensor longs = torch::randn({2, 9, 6});
  const torch::Tensor globals = torch::randn({2, 3, 6});
  const AttentionInputs inputs = AttentionInputs::Everything(2);
  for (const auto implementation :
       {AttentionImplementation::kReference, AttentionImplementation::kBlocked,
        AttentionImplementation::kKernel}) {
    attention->set_implementation(implementation);
    const GlobalLocalAttentionOutput alone = attention(longs, globals, inputs);
    EXPECT_EQ(alone.scores.layers, 0);
    for (const ScoreStorage storage :
         {ScoreStorage::kStore, ScoreStorage::kReverse}) {
      CarriedScores carried = {
          .residual = {.mode = ResidualAttention::kMean, .storage = storage}};
      for (int64_t layer = 0; layer < kLayers; ++layer) {
        const GlobalLocalAttentionOutput output =
            attention(longs, globals, inputs, carried);
        EXPECT_EQ(output.scores.layers, layer + 1);
        EXPECT_TRUE(IsClose(output.long_output, alone.long_output, 1e-6));
        EXPECT_TRUE(IsClose(output.global_output, alone.global_output, 1e-6));
        carried.previous = output.scores;
      }
    }
  }
}

TEST(LayerCountTest, RefusesScoresOfNoLayer) {
  torch::manual_seed(3);
  GlobalLocalAttention attention(
      GlobalLocalAttentionOptions{.long_hidden_size = 6,
                                  .global_hidden_size = 6,
                                  .num_heads = 2,
                                  .head_size = 3,
                                  .local_radius = 2});
  const torch::Tensor longs = torch::randn({1, 9, 6});
  const torch::Tensor globals = torch::randn({1, 3, 6});
  const auto run = [&](const ResidualScores& previous) {
    return attention(
        longs, globals, AttentionInputs::Everything(2),
        CarriedScores{.residual = {.mode = ResidualAttention::kMean},
                      .previous = previous});
  };
  ResidualScores scores = run({}).scores;
  EXPECT_NO_THROW(run(scores));
  scores.layers = 0;
  EXPECT_THROW(run(scores), c10::Error);
  scores.layers = -1;
  EXPECT_THROW(run(scores), c10::Error);
  EXPECT_THROW(run({.layers = 1}), c10::Error);
}

}  // namespace
}  // namespace etc
