// The contrastive loss against the numbers of doc/pretraining.md 12.5, in
// float64 to the digits printed there, against a loop over its definition, and
// its gradients against central differences.
#include "tasks/pretrain/heads/cpc_loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <vector>

#include "tests/support/gradient_check.h"
#include "tests/support/tensor_matchers.h"

namespace etc {
namespace {

torch::Tensor Rows(const std::vector<double>& values) {
  return torch::tensor(values, torch::kFloat64).reshape({-1, 2});
}

const std::vector<double> kContexts = {1, 0, 0.5, 0.5, 0, 1};
const std::vector<double> kTargets = {0.9, 0.1, 0.2, 0.8, 0.1, 1};
const std::vector<double> kMoreTargets = {0.9, 0.1, 0.2, 0.8, 0.1, 1, -1, 0};

// Target i is that of context i.
CpcInput InOrder(const torch::Tensor& contexts, const torch::Tensor& targets) {
  return {.contexts = contexts,
          .targets = targets,
          .target_rows = torch::arange(contexts.size(0))};
}

torch::Tensor Losses(const std::vector<double>& targets, double temperature,
                     const torch::Tensor& kernel = {}) {
  CpcInput input = InOrder(Rows(kContexts), Rows(targets));
  input.kernel = kernel;
  input.temperature = temperature;
  return ComputeCpcLosses(input).losses;
}

torch::Tensor Doubles(const std::vector<double>& values) {
  return torch::tensor(values, torch::kFloat64);
}

constexpr double kDigits = 5.1e-7;

TEST(CpcLossTest, ComputesTheNumbersOfTheSpecification) {
  const torch::Tensor plain = Losses(kTargets, 1);
  EXPECT_TRUE(IsClose(plain, Doubles({0.665732, 1.115558, 0.799892}), kDigits));
  EXPECT_NEAR(plain.mean().item<double>(), 0.860394, kDigits);
  const torch::Tensor extra = Losses(kMoreTargets, 1);
  EXPECT_TRUE(IsClose(extra, Doubles({0.739784, 1.229392, 0.952885}), kDigits));
  EXPECT_NEAR(extra.mean().item<double>(), 0.974020, kDigits);
  EXPECT_NEAR(Losses(kTargets, 0.1).mean().item<double>(), 0.474220, kDigits);
  EXPECT_NEAR(Losses(kMoreTargets, 0.1).mean().item<double>(), 0.474237,
              kDigits);
  const torch::Tensor kernel = Rows({1, 0.5, 0, 1});
  const torch::Tensor bilinear = Losses(kTargets, 1, kernel);
  EXPECT_TRUE(
      IsClose(bilinear, Doubles({0.879368, 1.079982, 0.799892}), kDigits));
  EXPECT_NEAR(bilinear.mean().item<double>(), 0.919747, kDigits);
  const torch::Tensor correct =
      ComputeCpcLosses(InOrder(Rows(kContexts), Rows(kTargets))).correct;
  EXPECT_EQ(correct.sum().item<int64_t>(), 2);
  EXPECT_FALSE(correct[1].item<bool>());
}

// Contexts whose targets stand elsewhere, among more of them.
CpcInput RandomCpcInput(torch::ScalarType type) {
  torch::manual_seed(5);
  const auto leaf = [&](at::IntArrayRef shape) {
    return torch::randn(shape, torch::kFloat64).to(type).requires_grad_(true);
  };
  return {.contexts = leaf({4, 3}),
          .targets = leaf({7, 3}),
          .target_rows = torch::tensor({5, 0, 6, 2}, torch::kInt64),
          .kernel = leaf({3, 3}),
          .temperature = 0.7};
}

TEST(CpcLossTest, MatchesItsDefinition) {
  const CpcInput input = RandomCpcInput(torch::kFloat64);
  const CpcLosses result = ComputeCpcLosses(input);
  for (int64_t i = 0; i < 4; ++i) {
    std::vector<double> scores;
    double sum = 0;
    for (int64_t j = 0; j < 7; ++j) {
      double score = 0;
      for (int64_t a = 0; a < 3; ++a) {
        for (int64_t b = 0; b < 3; ++b) {
          score += input.contexts[i][a].item<double>() *
                   input.kernel[a][b].item<double>() *
                   input.targets[j][b].item<double>();
        }
      }
      scores.push_back(score / 0.7);
      sum += std::exp(score / 0.7);
    }
    const auto right =
        static_cast<size_t>(input.target_rows[i].item<int64_t>());
    EXPECT_NEAR(result.losses[i].item<double>(), std::log(sum) - scores[right],
                1e-12);
    bool is_best = true;
    for (const double score : scores) {
      is_best = is_best && score <= scores[right];
    }
    EXPECT_EQ(result.correct[i].item<bool>(), is_best);
  }
}

TEST(CpcLossTest, GradientsMatchDifferences) {
  CpcInput input = RandomCpcInput(torch::kFloat64);
  const auto sum = [&] { return ComputeCpcLosses(input).losses.sum(); };
  EXPECT_TRUE(GradientsMatchDifferences(sum, {{"contexts", input.contexts},
                                              {"targets", input.targets},
                                              {"kernel", input.kernel}}));
  input.kernel = torch::Tensor();
  EXPECT_TRUE(GradientsMatchDifferences(
      sum, {{"contexts", input.contexts}, {"targets", input.targets}}));
}

TEST(CpcLossTest, Float32IsCloseToFloat64) {
  const CpcInput exact = RandomCpcInput(torch::kFloat64);
  CpcInput input = exact;
  for (torch::Tensor* tensor :
       {&input.contexts, &input.targets, &input.kernel}) {
    *tensor = tensor->detach().to(torch::kFloat32).requires_grad_(true);
  }
  const torch::Tensor losses = ComputeCpcLosses(input).losses;
  EXPECT_EQ(losses.scalar_type(), torch::kFloat32);
  EXPECT_TRUE(IsClose(losses, ComputeCpcLosses(exact).losses, /*atol=*/1e-5));
  losses.sum().backward();
  const auto gradients = torch::autograd::grad(
      {ComputeCpcLosses(exact).losses.sum()}, {exact.kernel});
  EXPECT_TRUE(IsClose(input.kernel.grad(), gradients[0], /*atol=*/1e-5));
}

// doc/pretraining.md 9.1: both are 0 and carry no gradient.
TEST(CpcLossTest, OneSentenceAndNoneAreZeroWithoutGradients) {
  for (const int64_t sentences : {0, 1}) {
    for (const auto type : {torch::kFloat32, torch::kFloat64}) {
      torch::manual_seed(4);
      const auto leaf = [&](at::IntArrayRef shape) {
        return torch::randn(shape, type).requires_grad_(true);
      };
      CpcInput input = InOrder(leaf({sentences, 3}), leaf({sentences, 3}));
      input.kernel = leaf({3, 3});
      const CpcLosses result = ComputeCpcLosses(input);
      EXPECT_EQ(result.losses.sizes(), at::IntArrayRef({sentences}));
      EXPECT_EQ(result.correct.sum().item<int64_t>(), sentences);
      EXPECT_EQ(result.losses.sum().item<double>(), 0);
      for (const torch::Tensor& gradient : torch::autograd::grad(
               {result.losses.sum()},
               {input.contexts, input.targets, input.kernel})) {
        EXPECT_TRUE(gradient.eq(0).all().item<bool>());
      }
    }
  }
}

TEST(CpcLossTest, CountsTheFirstOfEqualScores) {
  const CpcLosses result =
      ComputeCpcLosses(InOrder(Rows({1, 0, 0, 1}), Rows({1, 1, 1, 1})));
  EXPECT_TRUE(result.correct[0].item<bool>());
  EXPECT_FALSE(result.correct[1].item<bool>());
}

TEST(CpcLossTest, LargeScoresStayFinite) {
  const torch::Tensor big = torch::full({2, 2}, 1e15F);
  const CpcLosses result = ComputeCpcLosses(InOrder(big, big));
  EXPECT_NEAR(result.losses[0].item<double>(), std::log(2.0), 1e-6);
}

TEST(CpcLossTest, RefusesWhatDoesNotFit) {
  const torch::Tensor two = torch::ones({2, 3});
  const torch::Tensor three = torch::ones({3, 3});
  const auto throws = [&](const auto& change) {
    CpcInput input = InOrder(two, three);
    EXPECT_NO_THROW(ComputeCpcLosses(input));
    change(&input);
    EXPECT_THROW(ComputeCpcLosses(input), c10::Error);
  };
  throws([&](CpcInput* input) { *input = InOrder(three, two); });
  throws([](CpcInput* input) { input->targets = torch::ones({2, 4}); });
  throws([](CpcInput* input) { input->target_rows = torch::arange(2, 4); });
  throws([](CpcInput* input) { input->target_rows = torch::arange(1); });
  throws([](CpcInput* input) { input->target_rows = torch::Tensor(); });
  throws([](CpcInput* input) { input->kernel = torch::ones({2, 3}); });
  throws([](CpcInput* input) { input->temperature = 0; });
}

}  // namespace
}  // namespace etc
