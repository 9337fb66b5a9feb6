// The feed-forward products, fast against the definition in float64: shapes
// with odd sizes, with leading axes of any number, and tensors that are not
// contiguous. Each error may be twice that of the definition in float32 (three
// times for gradients), plus 3e-7 of the largest value: sums are taken in
// another order, and gelu's exponent is rounded. Gradients of the definition
// are checked against difference quotients; dropout of activations against its
// factors; of the fast path, that it gives the same at 1, 2 and 3 threads, that
// it keeps what its header says, and what it refuses.

#include "etc/nn/feed_forward.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>

#include <vector>

#include "base/bfloat16.h"
#include "base/dropout_seeds.h"
#include "base/linear.h"
#include "etc/nn/residual_norm.h"
#include "tests/support/gradient_check.h"
#include "tests/support/residual_dropout_factors.h"
#include "tests/support/tensor_matchers.h"

namespace etc {
namespace {

struct Shape {
  std::vector<int64_t> leading;
  int64_t hidden;
  int64_t intermediate;
};
const std::vector<Shape> kShapes = {{{1}, 1, 1},        {{2, 3}, 7, 33},
                                    {{}, 5, 9},         {{40}, 33, 7},
                                    {{2, 65}, 96, 200}, {{0}, 3, 4}};

struct Results {
  torch::Tensor output;
  std::vector<torch::Tensor> gradients;
};

// Float64 values, run in `type` with the gradient cos(output index).
struct Problem {
  explicit Problem(const Shape& shape) {
    torch::manual_seed(5);
    std::vector<int64_t> sizes = shape.leading;
    sizes.push_back(shape.hidden);
    const auto random = [](const std::vector<int64_t>& size) {
      return torch::randn(size, torch::kFloat64).to(torch::kFloat32);
    };
    values = {random(sizes), random({shape.intermediate, shape.hidden}),
              random({shape.intermediate}),
              random({shape.hidden, shape.intermediate})};
    gradient = random(sizes);
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

  FeedForwardInput Input(const std::vector<torch::Tensor>& leaves,
                         LinearPrecision precision = {}) const {
    LinearProducts products;
    products.set_precision(precision);
    return {.input = leaves[0],
            .intermediate_weight = products.Weight(leaves[1]),
            .intermediate_bias = leaves[2],
            .output_weight = products.Weight(leaves[3]),
            .activation = activation};
  }

  Results Run(torch::ScalarType type,
              torch::Tensor (*function)(const FeedForwardInput&)) const {
    const std::vector<torch::Tensor> leaves = Leaves(type);
    const torch::Tensor output = function(Input(leaves));
    return {.output = output.detach(),
            .gradients =
                torch::autograd::grad({output}, leaves, {gradient.to(type)})};
  }

  std::vector<torch::Tensor> values;
  torch::Tensor gradient;
  Activation activation = Activation::kGelu;
};

double Largest(const torch::Tensor& tensor) {
  return tensor.numel() == 0 ? 0.0 : tensor.abs().max().item<double>();
}

void ExpectAsGood(const torch::Tensor& fast, const torch::Tensor& plain,
                  const torch::Tensor& exact, double times) {
  ASSERT_EQ(fast.sizes(), exact.sizes());
  EXPECT_LE(MaxError(fast, exact),
            times * MaxError(plain, exact) + 3e-7 * Largest(exact));
}

void ExpectMatchesDefinition(const Problem& problem) {
  const Results fast = problem.Run(torch::kFloat32, FeedForward);
  const Results plain = problem.Run(torch::kFloat32, FeedForwardReference);
  const Results exact = problem.Run(torch::kFloat64, FeedForwardReference);
  ExpectAsGood(fast.output, plain.output, exact.output, 2);
  for (size_t i = 0; i < exact.gradients.size(); ++i) {
    SCOPED_TRACE(i);
    ExpectAsGood(fast.gradients[i], plain.gradients[i], exact.gradients[i], 3);
  }
}

TEST(FeedForwardTest, MatchesTheDefinition) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(testing::Message()
                 << shape.leading.size() << " leading axes, " << shape.hidden);
    Problem problem(shape);
    ExpectMatchesDefinition(problem);
    problem.activation = Activation::kGeluErf;
    ExpectMatchesDefinition(problem);
  }
}

TEST(FeedForwardTest, DropsActivations) {
  const Problem problem({{40}, 33, 70});
  for (const Activation activation : {Activation::kRelu, Activation::kGelu}) {
    const std::vector<torch::Tensor> leaves = problem.Leaves(torch::kFloat32);
    FeedForwardInput input = problem.Input(leaves);
    input.activation = activation;
    input.dropout = 0.3;
    std::vector<uint64_t> seeds;
    torch::Tensor output;
    {
      const RecordDropoutSeeds record(&seeds);
      output = FeedForward(input);
    }
    ASSERT_EQ(seeds.size(), 1u);
    const torch::Tensor factors =
        ResidualDropoutFactors(seeds[0], {40, 70}, 0.3);
    EXPECT_NEAR(factors.eq(0).to(torch::kFloat32).mean().item<double>(), 0.3,
                0.05);
    const std::vector<torch::Tensor> plain = problem.Leaves(torch::kFloat32);
    const torch::Tensor expected = torch::linear(
        Activate(activation, torch::linear(plain[0], plain[1], plain[2])) *
            factors,
        plain[3]);
    EXPECT_TRUE(IsClose(output, expected, 3e-5));
    const torch::Tensor gradient = problem.gradient.to(torch::kFloat32);
    const auto actual = torch::autograd::grad({output}, leaves, {gradient});
    const auto wanted = torch::autograd::grad({expected}, plain, {gradient});
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_TRUE(IsClose(actual[i], wanted[i], 2e-4)) << i;
    }
  }
}

TEST(FeedForwardTest, TakesTensorsThatAreNotContiguous) {
  Problem problem({{4, 6}, 7, 9});
  torch::Tensor& input = problem.values[0];
  input = input.transpose(0, 1).contiguous().transpose(0, 1);
  torch::Tensor& weight = problem.values[1];
  weight = weight.t().contiguous().t();
  problem.values[2] = torch::randn({9, 2}).select(1, 1);
  problem.gradient = torch::randn({1, 6, 7}).expand({4, 6, 7});
  ASSERT_FALSE(input.is_contiguous());
  ExpectMatchesDefinition(problem);
}

TEST(FeedForwardTest, HasADefinitionWithTheRightGradients) {
  Problem problem({{2, 3}, 4, 5});
  const std::vector<torch::Tensor> leaves = problem.Leaves(torch::kFloat64);
  for (const Activation activation :
       {Activation::kGelu, Activation::kGeluErf}) {
    problem.activation = activation;
    EXPECT_TRUE(GradientsMatchDifferences(
        [&] { return FeedForward(problem.Input(leaves)).sin().sum(); },
        {{"input", leaves[0]},
         {"intermediate_weight", leaves[1]},
         {"intermediate_bias", leaves[2]},
         {"output_weight", leaves[3]}},
        1e-6));
  }
}

TEST(FeedForwardTest, GivesTheSameAtAnyNumberOfThreads) {
  const int threads_before = at::get_num_threads();
  const Problem problem({{3, 50}, 33, 70});
  // Tests the operations between the products; those are tested in linear_test.
  const torch::Tensor input = torch::randn({150, 70});
  const torch::Tensor gradient = torch::randn({150, 70});
  at::set_num_threads(1);
  constexpr Activation kForm = Activation::kGeluErf;
  const torch::Tensor output = BiasGelu(kForm, input, problem.values[2]);
  const BiasGeluGradients back =
      BiasGeluBackward_(kForm, input, problem.values[2], gradient.clone());
  for (const int threads : {2, 3}) {
    at::set_num_threads(threads);
    EXPECT_TRUE(BiasGelu(kForm, input, problem.values[2]).equal(output));
    const BiasGeluGradients again =
        BiasGeluBackward_(kForm, input, problem.values[2], gradient.clone());
    EXPECT_TRUE(again.output.equal(output));
    EXPECT_TRUE(again.input_gradient.equal(back.input_gradient));
    EXPECT_TRUE(again.bias_gradient.equal(back.bias_gradient));
  }
  at::set_num_threads(threads_before);
}

TEST(FeedForwardTest, GivesTheSameAtAnyNumberOfThreadsInBfloat16) {
  if (kernels::Bfloat16ProductsOfThisCpu() ==
      kernels::Bfloat16Products::kNone) {
    GTEST_SKIP() << "this CPU has no products of bfloat16";
  }
  const int threads_before = at::get_num_threads();
  // Tiles of several rows and columns, the last ones smaller.
  const Problem problem({{3, 150}, 33, 1100});
  const auto run = [&](int threads) {
    at::set_num_threads(threads);
    const std::vector<torch::Tensor> leaves = problem.Leaves(torch::kFloat32);
    const torch::Tensor output =
        FeedForward(problem.Input(leaves, LinearPrecision::kBfloat16));
    std::vector<torch::Tensor> results =
        torch::autograd::grad({output}, leaves, {problem.gradient});
    results.push_back(output);
    return results;
  };
  const std::vector<torch::Tensor> first = run(1);
  for (const int threads : {2, 3}) {
    const std::vector<torch::Tensor> again = run(threads);
    for (size_t i = 0; i < first.size(); ++i) {
      EXPECT_TRUE(again[i].equal(first[i])) << i;
    }
  }
  at::set_num_threads(threads_before);
}

TEST(FeedForwardTest, GivesTheSameWithoutGradients) {
  // The second has more rows than a slice, and a last slice that is shorter.
  for (const Shape& shape :
       {Shape{{2, 20}, 16, 40}, Shape{{3, 3000}, 16, 40}}) {
    const Problem problem(shape);
    const std::vector<torch::Tensor> leaves = problem.Leaves(torch::kFloat32);
    const torch::Tensor with = FeedForward(problem.Input(leaves));
    const torch::NoGradGuard no_grad;
    const torch::Tensor without = FeedForward(problem.Input(leaves));
    EXPECT_TRUE(with.requires_grad());
    EXPECT_FALSE(without.requires_grad());
    EXPECT_TRUE(with.equal(without));
  }
}

TEST(FeedForwardTest, ServesOtherActivations) {
  const Problem problem({{2, 3}, 4, 5});
  FeedForwardInput input = problem.Input(problem.values);
  for (const Activation activation :
       {Activation::kRelu, Activation::kTanh, Activation::kLinear}) {
    input.activation = activation;
    EXPECT_TRUE(
        IsClose(FeedForward(input),
                torch::matmul(
                    Activate(activation,
                             torch::matmul(input.input, problem.values[1].t()) +
                                 problem.values[2]),
                    problem.values[3].t()),
                1e-4));
  }
}

// Rounding has 8 bits: results are off by less than a hundredth of the largest.
TEST(FeedForwardTest, IsCloseInBfloat16) {
  if (kernels::Bfloat16ProductsOfThisCpu() ==
      kernels::Bfloat16Products::kNone) {
    GTEST_SKIP() << "this CPU has no products of bfloat16";
  }
  for (const Activation activation :
       {Activation::kGelu, Activation::kGeluErf, Activation::kTanh}) {
    Problem problem({{2, 65}, 96, 200});
    problem.values[1] *= 0.1;  // else the slope of tanh depends on the last bit
    std::vector<Results> results;
    for (const LinearPrecision precision :
         {LinearPrecision::kFloat32, LinearPrecision::kBfloat16}) {
      const std::vector<torch::Tensor> leaves = problem.Leaves(torch::kFloat32);
      FeedForwardInput input = problem.Input(leaves, precision);
      input.activation = activation;
      const torch::Tensor output = FeedForward(input);
      EXPECT_EQ(output.scalar_type(), torch::kFloat32);
      results.push_back({.output = output.detach(),
                         .gradients = torch::autograd::grad(
                             {output}, leaves, {problem.gradient})});
    }
    const auto expect_close = [](const torch::Tensor& actual,
                                 const torch::Tensor& expected) {
      const double error = MaxError(actual, expected);
      EXPECT_LT(error, 0.01 * Largest(expected));
      EXPECT_GT(error, 1e-5 * Largest(expected));  // it does round
    };
    expect_close(results[1].output, results[0].output);
    for (size_t i = 0; i < results[0].gradients.size(); ++i) {
      SCOPED_TRACE(i);
      EXPECT_EQ(results[1].gradients[i].scalar_type(), torch::kFloat32);
      expect_close(results[1].gradients[i], results[0].gradients[i]);
    }
  }
}

TEST(FeedForwardTest, RefusesGradientsOfGradients) {
  const Problem problem({{2}, 3, 4});
  const std::vector<torch::Tensor> leaves = problem.Leaves(torch::kFloat32);
  const torch::Tensor sum = FeedForward(problem.Input(leaves)).sum();
  EXPECT_THROW(torch::autograd::grad({sum}, {leaves[0]}, {},
                                     /*retain_graph=*/true,
                                     /*create_graph=*/true),
               c10::Error);
}

TEST(FeedForwardTest, RejectsOtherShapes) {
  const Problem problem({{2}, 3, 4});
  const FeedForwardInput good = problem.Input(problem.values);
  FeedForwardInput bad = good;
  bad.input = torch::zeros({2, 4});
  EXPECT_THROW(FeedForward(bad), c10::Error);
  bad = good;
  bad.intermediate_bias = torch::zeros({3});
  EXPECT_THROW(FeedForward(bad), c10::Error);
  bad = good;
  bad.output_weight = LinearProducts().Weight(torch::zeros({3, 3}));
  EXPECT_THROW(FeedForward(bad), c10::Error);
  bad = good;
  bad.output_weight.operand = bad.output_weight.operand.to(torch::kBFloat16);
  EXPECT_THROW(FeedForward(bad), c10::Error);
  bad = good;
  bad.input = torch::Tensor();
  EXPECT_THROW(FeedForward(bad), c10::Error);
}

}  // namespace
}  // namespace etc
