// The end of a residual block, fast against the definition in float64, with the
// masks of dropout spelled out for the definition: odd sizes, with and without
// bias and dropout, tensors that are not contiguous. Each error may be twice
// that of the definition in float32 (three times for gradients), plus 3e-7 of
// the largest value: sums are taken in another order. Gradients of the
// definition are checked against difference quotients; of the fast path, that
// it gives the same at 1, 2 and 3 threads and what it refuses. Hidden size 1
// has no gradient through a norm and is left to the sum.

#include "etc/nn/residual_norm.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>

#include <vector>

#include "base/dropout_seeds.h"
#include "tests/support/gradient_check.h"
#include "tests/support/residual_dropout_factors.h"
#include "tests/support/tensor_matchers.h"

namespace etc {
namespace {

constexpr double kEpsilon = 1e-12;

struct Case {
  std::vector<int64_t> leading;
  int64_t hidden;
  bool bias = true;
  double dropout = 0.1;
  bool norm = true;
};

struct Results {
  torch::Tensor output;
  std::vector<torch::Tensor> gradients;
};

// Leaves: change, residual, [norm weight, norm bias,] [bias].
struct Problem {
  explicit Problem(const Case& c) : which(c) {
    torch::manual_seed(6);
    std::vector<int64_t> sizes = c.leading;
    sizes.push_back(c.hidden);
    values = {torch::randn(sizes), torch::randn(sizes)};
    if (c.norm) {
      values.push_back(torch::randn({c.hidden}));
      values.push_back(torch::randn({c.hidden}));
    }
    if (c.bias) {
      values.push_back(torch::randn({c.hidden}));
    }
    gradient = torch::randn(sizes);
  }

  std::vector<torch::Tensor> Leaves(torch::ScalarType type) const {
    std::vector<torch::Tensor> leaves;
    for (const torch::Tensor& value : values) {
      leaves.push_back(value
                           .to(type, /*non_blocking=*/false, /*copy=*/true,
                               torch::MemoryFormat::Preserve)
                           .requires_grad_(true));
    }
    return leaves;
  }

  torch::Tensor Output(const std::vector<torch::Tensor>& leaves,
                       const torch::Tensor& factors) const {
    const ResidualInput input = {
        .change = leaves[0],
        .bias = which.bias ? leaves.back() : torch::Tensor(),
        .residual = leaves[1],
        .dropout = which.dropout,
        .dropout_factors = factors};
    if (!which.norm) {
      return ResidualSum(input);
    }
    return ResidualNorm(
        input, {.weight = leaves[2], .bias = leaves[3], .epsilon = kEpsilon});
  }

  Results Run(torch::ScalarType type, const torch::Tensor& factors) const {
    const std::vector<torch::Tensor> leaves = Leaves(type);
    const torch::Tensor output = Output(leaves, factors);
    return {.output = output.detach(),
            .gradients =
                torch::autograd::grad({output}, leaves, {gradient.to(type)})};
  }

  Results RunFast() const {
    torch::manual_seed(7);
    return Run(torch::kFloat32, {});
  }

  // The dropout factors of RunFast.
  torch::Tensor Factors() const {
    torch::manual_seed(7);
    return ResidualDropoutFactors(DrawDropoutSeed(), gradient.sizes(),
                                  which.dropout);
  }

  Case which;
  std::vector<torch::Tensor> values;
  torch::Tensor gradient;
};

void ExpectAsGood(const torch::Tensor& fast, const torch::Tensor& plain,
                  const torch::Tensor& exact, double times) {
  ASSERT_EQ(fast.sizes(), exact.sizes());
  const double largest =
      exact.numel() == 0 ? 0.0 : exact.abs().max().item<double>();
  EXPECT_LE(MaxError(fast, exact),
            times * MaxError(plain, exact) + 3e-7 * largest);
}

void ExpectMatchesDefinition(const Problem& problem) {
  const torch::Tensor factors = problem.Factors();
  const Results fast = problem.RunFast();
  const Results plain = problem.Run(torch::kFloat32, factors);
  const Results exact =
      problem.Run(torch::kFloat64, factors.to(torch::kFloat64));
  ExpectAsGood(fast.output, plain.output, exact.output, 2);
  for (size_t i = 0; i < exact.gradients.size(); ++i) {
    SCOPED_TRACE(i);
    ExpectAsGood(fast.gradients[i], plain.gradients[i], exact.gradients[i], 3);
  }
}

const std::vector<Case> kCases = {
    {.leading = {2, 3}, .hidden = 7},
    {.leading = {}, .hidden = 33},
    {.leading = {0}, .hidden = 4},
    {.leading = {1, 20}, .hidden = 768},
    {.leading = {2, 40}, .hidden = 33, .bias = false},
    {.leading = {2, 40}, .hidden = 33, .dropout = 0.0},
    {.leading = {50}, .hidden = 20, .bias = false, .dropout = 0.0},
};

TEST(ResidualNormTest, MatchesTheDefinition) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(testing::Message() << "hidden " << c.hidden << ", dropout "
                                    << c.dropout << ", bias " << c.bias);
    ExpectMatchesDefinition(Problem(c));
  }
}

TEST(ResidualSumTest, MatchesTheDefinition) {
  std::vector<Case> cases = kCases;
  cases.push_back({.leading = {3}, .hidden = 1});
  for (Case c : cases) {
    c.norm = false;
    SCOPED_TRACE(testing::Message() << "hidden " << c.hidden << ", dropout "
                                    << c.dropout << ", bias " << c.bias);
    ExpectMatchesDefinition(Problem(c));
  }
}

TEST(ResidualNormTest, TakesTensorsThatAreNotContiguous) {
  Problem problem({.leading = {4, 6}, .hidden = 7});
  problem.values[0] =
      problem.values[0].transpose(0, 1).contiguous().transpose(0, 1);
  problem.values[1] = torch::randn({4, 6, 14}).slice(2, 0, 14, 2);
  problem.values[2] = torch::randn({7, 2}).select(1, 1);
  problem.gradient = torch::randn({1, 6, 7}).expand({4, 6, 7});
  ASSERT_FALSE(problem.values[0].is_contiguous());
  ExpectMatchesDefinition(problem);
}

TEST(ResidualNormTest, HasDefinitionsWithTheRightGradients) {
  for (const bool norm : {false, true}) {
    const Problem problem({.leading = {2, 3}, .hidden = 5, .norm = norm});
    const torch::Tensor factors = problem.Factors().to(torch::kFloat64);
    const std::vector<torch::Tensor> leaves = problem.Leaves(torch::kFloat64);
    std::vector<std::pair<std::string, torch::Tensor>> variables;
    for (const torch::Tensor& leaf : leaves) {
      variables.emplace_back(std::to_string(variables.size()), leaf);
    }
    EXPECT_TRUE(GradientsMatchDifferences(
        [&] { return problem.Output(leaves, factors).sin().sum(); }, variables,
        1e-6));
  }
}

TEST(ResidualNormTest, GivesTheSameAtAnyNumberOfThreads) {
  const int threads_before = at::get_num_threads();
  for (const bool norm : {false, true}) {
    const Problem problem({.leading = {2, 150}, .hidden = 33, .norm = norm});
    at::set_num_threads(1);
    const Results first = problem.RunFast();
    for (const int threads : {2, 3}) {
      at::set_num_threads(threads);
      const Results result = problem.RunFast();
      EXPECT_TRUE(result.output.equal(first.output));
      for (size_t i = 0; i < first.gradients.size(); ++i) {
        EXPECT_TRUE(result.gradients[i].equal(first.gradients[i])) << i;
      }
    }
  }
  at::set_num_threads(threads_before);
}

// LayerNorm alone: a change without bias, residual and dropout.
TEST(ApplyLayerNormTest, IsLayerNormAtAnyNumberOfThreads) {
  const int threads_before = at::get_num_threads();
  torch::manual_seed(9);
  torch::nn::LayerNorm norm(torch::nn::LayerNormOptions({100}).eps(1e-5));
  const torch::Tensor input = torch::randn({3, 400, 100});
  const torch::Tensor gradient = torch::randn({3, 400, 100});
  const auto run = [&](torch::ScalarType type, int threads, bool plain) {
    at::set_num_threads(threads);
    norm->to(type);
    const torch::Tensor x = input.to(type).detach().requires_grad_(true);
    const torch::Tensor output =
        plain ? norm->forward(x) : ApplyLayerNorm(x, norm);
    std::vector<torch::Tensor> all = torch::autograd::grad(
        {output}, {x, norm->weight, norm->bias}, {gradient.to(type)});
    all.push_back(output.detach());
    return all;
  };
  const auto exact = run(torch::kFloat64, 1, /*plain=*/true);
  const auto plain = run(torch::kFloat32, 1, /*plain=*/true);
  const auto first = run(torch::kFloat32, 1, /*plain=*/false);
  for (const int threads : {1, 2, 3, 4}) {
    const auto again = run(torch::kFloat32, threads, /*plain=*/false);
    for (size_t i = 0; i < first.size(); ++i) {
      SCOPED_TRACE(i);
      ExpectAsGood(first[i], plain[i], exact[i], 2);
      EXPECT_TRUE(again[i].equal(first[i])) << threads << " threads";
    }
  }
  at::set_num_threads(threads_before);
}

TEST(ResidualNormTest, GivesTheSameWithoutGradients) {
  const Problem problem({.leading = {20}, .hidden = 33});
  const std::vector<torch::Tensor> leaves = problem.Leaves(torch::kFloat32);
  torch::manual_seed(1);
  const torch::Tensor with = problem.Output(leaves, {});
  const torch::NoGradGuard no_grad;
  torch::manual_seed(1);
  const torch::Tensor without = problem.Output(leaves, {});
  EXPECT_TRUE(with.requires_grad());
  EXPECT_FALSE(without.requires_grad());
  EXPECT_TRUE(with.equal(without));
}

// 40,000 draws at 0.25: the share lies within 5 standard deviations.
TEST(ResidualSumTest, DropsTheRightShareAnewInEachCall) {
  torch::manual_seed(8);
  const ResidualInput input = {.change = torch::ones({200, 200}),
                               .residual = torch::zeros({200, 200}),
                               .dropout = 0.25};
  const torch::Tensor first = ResidualSum(input);
  EXPECT_NEAR(first.eq(0).to(torch::kFloat64).mean().item<double>(), 0.25,
              5 * std::sqrt(0.25 * 0.75 / 40000));
  EXPECT_TRUE((first.eq(0) | first.eq(4.0f / 3.0f)).all().item<bool>());
  EXPECT_FALSE(ResidualSum(input).equal(first));
}

// Rows of a stream by themselves, which draw the same seed.
TEST(ResidualNormTest, DropsTheSameElementsOfALaterSlice) {
  const torch::Tensor change = torch::randn({9, 20}).requires_grad_(true);
  const torch::Tensor residual = torch::randn({9, 20});
  const NormParameters norm = {.weight = torch::randn({20}),
                               .bias = torch::randn({20})};
  const auto run = [&](int64_t begin, int64_t count) {
    torch::manual_seed(8);
    const ResidualInput input = {.change = change.narrow(0, begin, count),
                                 .residual = residual.narrow(0, begin, count),
                                 .dropout = 0.4,
                                 .first_row = begin};
    torch::manual_seed(8);
    const torch::Tensor sum = ResidualSum(input);
    torch::manual_seed(8);
    const torch::Tensor normed = ResidualNorm(input, norm);
    const torch::Tensor gradient =
        torch::autograd::grad({sum.square().sum() + normed.sin().sum()},
                              {change})[0]
            .narrow(0, begin, count);
    return std::vector<torch::Tensor>{sum, normed, gradient};
  };
  const std::vector<torch::Tensor> all = run(0, 9);
  const std::vector<torch::Tensor> some = run(4, 3);
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_TRUE(some[i].equal(all[i].narrow(0, 4, 3))) << i;
  }
  EXPECT_THROW(ResidualSum({.change = torch::ones({3, 4}, torch::kFloat64),
                            .dropout = 0.4,
                            .first_row = 4}),
               c10::Error);
}

TEST(ResidualNormTest, RefusesGradientsOfGradients) {
  for (const bool norm : {false, true}) {
    const Problem problem({.leading = {2}, .hidden = 3, .norm = norm});
    const std::vector<torch::Tensor> leaves = problem.Leaves(torch::kFloat32);
    const torch::Tensor sum = problem.Output(leaves, {}).sum();
    EXPECT_THROW(torch::autograd::grad({sum}, {leaves[0]}, {},
                                       /*retain_graph=*/true,
                                       /*create_graph=*/true),
                 c10::Error);
  }
}

TEST(ResidualNormTest, RejectsWhatDoesNotFit) {
  const ResidualInput good = {.change = torch::zeros({2, 3}),
                              .residual = torch::zeros({2, 3})};
  EXPECT_NO_THROW(ResidualSum(good));
  ResidualInput bad = good;
  bad.residual = torch::zeros({2, 4});
  EXPECT_THROW(ResidualSum(bad), c10::Error);
  bad = good;
  bad.bias = torch::zeros({2});
  EXPECT_THROW(ResidualSum(bad), c10::Error);
  bad = good;
  bad.dropout = 1.0;
  EXPECT_THROW(ResidualSum(bad), c10::Error);
  EXPECT_THROW(ResidualNorm(good, {.weight = torch::ones({2}),
                                   .bias = torch::ones({3})}),
               c10::Error);
}

}  // namespace
}  // namespace etc
