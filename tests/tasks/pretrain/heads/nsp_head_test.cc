// Pooler and next-sentence prediction against the numbers of
// doc/pretraining.md 12.4, in float64 to the digits printed there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "tasks/inputs/text_head.h"
#include "tasks/pretrain/heads/mlm_head.h"
#include "tests/support/gradient_check.h"
#include "tests/support/tensor_matchers.h"
#include "tests/support/toy_model.h"

namespace etc {
namespace {

NspLayers GoldenLayers() {
  NspLayers layers = MakeNspLayers(4, 0.02);
  layers.pooler->to(torch::kFloat64);
  layers.classifier->to(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  // The specification's kernel is [in, out], its output weights [out, in].
  layers.pooler->weight.copy_(ToyVariable(8, {4, 4}).t() * 0.3);
  layers.pooler->bias.copy_(ToyVariable(9, {4}) * 0.1);
  layers.classifier->weight.copy_(ToyVariable(10, {2, 4}) * 0.3);
  layers.classifier->bias.copy_(ToyVariable(11, {2}) * 0.1);
  return layers;
}

// Token 0 of the two examples of 5 tokens.
torch::Tensor GoldenFirst() {
  return ToyVariable(1, {2, 5, 4}).select(1, 0).clone();
}

torch::Tensor Doubles(std::vector<double> values, at::IntArrayRef shape) {
  return torch::tensor(values, torch::kFloat64).reshape(shape);
}

TEST(NspHeadTest, ComputesTheNumbersOfTheSpecification) {
  const NspLayers layers = GoldenLayers();
  const torch::Tensor pooled = Pool(GoldenFirst(), layers.pooler);
  EXPECT_TRUE(IsClose(pooled,
                      Doubles({-0.182407, -0.066609, 0.060013, 0.176866,  //
                               -0.309552, -0.215220, -0.087412, 0.055172},
                              {2, 4}),
                      /*atol=*/5.1e-7));
  torch::nn::Linear classifier = layers.classifier;
  EXPECT_TRUE(IsClose(
      classifier(pooled),
      Doubles({0.080714, -0.012170, -0.069443, -0.039026}, {2, 2}), 5.1e-7));
  const NspLosses result = ComputeNspLosses(
      GoldenFirst(), torch::tensor({0, 1}, torch::kInt64), layers);
  EXPECT_NEAR(result.losses.mean().item<double>(), 0.66291888, 5.1e-9);
  EXPECT_TRUE(result.correct.all().item<bool>());
  // The whole loss of doc/pretraining.md 12.4, with its L_mlm.
  EXPECT_NEAR(2.01431023 + result.losses.mean().item<double>(), 2.67722910,
              1.1e-8);
}

TEST(NspHeadTest, GradientsMatchDifferences) {
  const NspLayers layers = GoldenLayers();
  const torch::Tensor first = GoldenFirst().requires_grad_(true);
  const torch::Tensor labels = torch::tensor({1, 0}, torch::kInt64);
  EXPECT_TRUE(GradientsMatchDifferences(
      [&] { return ComputeNspLosses(first, labels, layers).losses.sum(); },
      {{"first", first},
       {"pooler.weight", layers.pooler->weight},
       {"pooler.bias", layers.pooler->bias},
       {"classifier.weight", layers.classifier->weight},
       {"classifier.bias", layers.classifier->bias}}));
}

TEST(NspHeadTest, StartsAsBertDoes) {
  torch::manual_seed(1);
  const NspLayers layers = MakeNspLayers(64, 0.1);
  EXPECT_EQ(layers.classifier->weight.sizes(), at::IntArrayRef({2, 64}));
  EXPECT_LE(layers.pooler->weight.abs().max().item<double>(), 0.2);
  EXPECT_NEAR(layers.pooler->weight.std().item<double>(), 0.088, 0.002);
  EXPECT_TRUE(layers.pooler->bias.eq(0).all().item<bool>());
  EXPECT_TRUE(layers.classifier->bias.eq(0).all().item<bool>());
}

TEST(NspHeadTest, CountsTheFirstOfEqualLogits) {
  const NspLayers layers = MakeNspLayers(3, 0.1);
  const NspLosses result = ComputeNspLosses(
      torch::zeros({2, 3}), torch::tensor({0, 1}, torch::kInt64), layers);
  EXPECT_TRUE(result.correct[0].item<bool>());
  EXPECT_FALSE(result.correct[1].item<bool>());
}

TEST(NspHeadTest, RefusesOtherShapes) {
  const NspLayers layers = MakeNspLayers(3, 0.1);
  const torch::Tensor labels = torch::zeros({2}, torch::kInt64);
  EXPECT_THROW(ComputeNspLosses(torch::zeros({3, 3}), labels, layers),
               c10::Error);
  EXPECT_THROW(ComputeNspLosses(torch::zeros({2, 1, 3}), labels, layers),
               c10::Error);
}

}  // namespace
}  // namespace etc
