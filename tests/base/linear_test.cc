// Linear layers in both precisions against products of the same operands in
// float64, rounded by LibTorch for bfloat16: sums are in float32, so errors may
// be twice those of LibTorch's float32 product of the same operands, plus 3e-7
// of the largest value. Odd sizes, sizes 1 and 0, factors transposed and cut
// out of others. bfloat16 is skipped where the CPU has no such products.

#include "base/linear.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>

#include <algorithm>
#include <vector>

#include "base/apply_linear.h"
#include "base/bfloat16.h"
#include "base/matrix_product.h"
#include "tests/support/tensor_matchers.h"

namespace etc {
namespace {

class LinearTest : public testing::TestWithParam<LinearPrecision> {
 protected:
  void SetUp() override {
    if (IsRounded() && kernels::Bfloat16ProductsOfThisCpu() ==
                           kernels::Bfloat16Products::kNone) {
      GTEST_SKIP() << "this CPU has no products of bfloat16";
    }
    torch::manual_seed(3);
    products_.set_precision(GetParam());
  }

  static bool IsRounded() { return GetParam() == LinearPrecision::kBfloat16; }

  torch::Tensor Operand(const torch::Tensor& value) const {
    return products_.Input(value).operand;
  }

  // `actual` as the product of `a` and `b` as operands, plus `bias`.
  static void ExpectProduct(const torch::Tensor& actual, const torch::Tensor& a,
                            const torch::Tensor& b,
                            const torch::Tensor& bias = {}) {
    const auto product = [&](torch::ScalarType type) {
      const auto operand = [&](const torch::Tensor& value) {
        return (IsRounded() ? value.to(torch::kBFloat16) : value).to(type);
      };
      const torch::Tensor result = torch::matmul(operand(a), operand(b));
      return bias.defined() ? result + bias.to(type) : result;
    };
    const torch::Tensor exact = product(torch::kFloat64);
    ASSERT_EQ(actual.sizes(), exact.sizes());
    ASSERT_EQ(actual.scalar_type(), torch::kFloat32);
    const double largest =
        exact.numel() == 0 ? 0.0 : exact.abs().max().item<double>();
    EXPECT_LE(MaxError(actual, exact),
              2 * MaxError(product(torch::kFloat32), exact) + 3e-7 * largest);
  }

  LinearProducts products_;
  const torch::Tensor input_ = torch::randn({2, 9, 33});
};

INSTANTIATE_TEST_SUITE_P(Precisions, LinearTest,
                         testing::Values(LinearPrecision::kFloat32,
                                         LinearPrecision::kBfloat16),
                         [](const auto& precision) {
                           return precision.param == LinearPrecision::kFloat32
                                      ? "Float32"
                                      : "Bfloat16";
                         });

TEST_P(LinearTest, MultipliesMatricesOfAnyLayout) {
  struct Sizes {
    int64_t m, k, n;
  };
  for (const Sizes& s : {Sizes{1, 1, 1}, Sizes{7, 33, 5}, Sizes{1, 64, 9},
                         Sizes{64, 1, 3}, Sizes{130, 96, 1}, Sizes{0, 3, 4},
                         Sizes{3, 0, 4}, Sizes{65, 300, 64}}) {
    SCOPED_TRACE(testing::Message() << s.m << " " << s.k << " " << s.n);
    const torch::Tensor a = torch::randn({s.m, s.k});
    const torch::Tensor b = torch::randn({s.k, s.n});
    const torch::Tensor bias = torch::randn({s.n});
    const torch::Tensor a_rows = Operand(a), b_rows = Operand(b);
    const torch::Tensor a_columns = Operand(a.t().contiguous()).t();
    const torch::Tensor b_columns = Operand(b.t().contiguous()).t();
    const torch::Tensor wide =
        torch::cat({b_rows, b_rows}, 1).narrow(1, s.n, s.n);
    const torch::Tensor sparse = torch::stack({a_rows, a_rows}, 2).select(2, 1);
    ExpectProduct(MatrixProduct(a_rows, b_rows), a, b);
    ExpectProduct(MatrixProduct(a_rows, b_columns, bias), a, b, bias);
    ExpectProduct(MatrixProduct(a_columns, b_rows), a, b);
    ExpectProduct(MatrixProduct(a_columns, b_columns), a, b);
    ExpectProduct(MatrixProduct(sparse, wide), a, b);
  }
}

TEST_P(LinearTest, HasTheGradientsOfItsProducts) {
  for (const bool with_bias : {false, true}) {
    const torch::Tensor input = torch::randn({2, 9, 33}).requires_grad_(true);
    const torch::Tensor weight = torch::randn({7, 33}).requires_grad_(true);
    const torch::Tensor bias =
        with_bias ? torch::randn({7}).requires_grad_(true) : torch::Tensor();
    const torch::Tensor output = LinearProducts::Apply(
        products_.Input(input), products_.Weight(weight), bias);
    ExpectProduct(output.detach(), input.detach(), weight.detach().t(),
                  with_bias ? bias.detach() : bias);
    const torch::Tensor gradient = torch::randn({2, 9, 7});
    output.backward(gradient);
    ExpectProduct(input.grad(), gradient, weight.detach());
    ExpectProduct(weight.grad(), gradient.reshape({18, 7}).t(),
                  input.detach().reshape({18, 33}));
    if (with_bias) {
      EXPECT_TRUE(IsClose(bias.grad(), gradient.reshape({18, 7}).sum(0), 1e-5));
    }
  }
}

TEST_P(LinearTest, GivesTheSameAtAnyNumberOfThreads) {
  const int threads_before = at::get_num_threads();
  // Forward, and the gradient of a weight: few results of long sums, which
  // oneDNN alone would divide among threads; the last have several tiles.
  for (const auto& [rows, depth, columns] :
       {std::tuple(300, 96, 200), std::tuple(64, 2000, 96),
        std::tuple(48, 4096, 32), std::tuple(4, 4096, 64),
        std::tuple(1, 4096, 768), std::tuple(100, 4096, 36),
        std::tuple(770, 300, 800), std::tuple(200, 3000, 500)}) {
    SCOPED_TRACE(testing::Message() << rows << " " << depth << " " << columns);
    const torch::Tensor a = Operand(torch::randn({depth, rows})).t();
    const torch::Tensor b = Operand(torch::randn({depth, columns}));
    const torch::Tensor bias = torch::randn({columns});
    at::set_num_threads(1);
    const torch::Tensor first = MatrixProduct(a, b, bias);
    for (const int threads : {2, 3, 4, 7}) {
      at::set_num_threads(threads);
      EXPECT_TRUE(MatrixProduct(a, b, bias).equal(first)) << threads;
    }
  }
  at::set_num_threads(threads_before);
}

TEST_P(LinearTest, MultipliesMatricesOfSeveralTiles) {
  for (const auto& [m, k, n] :
       {std::tuple(130, 20, 400), std::tuple(800, 40, 900),
        std::tuple(4100, 24, 1600)}) {
    SCOPED_TRACE(testing::Message() << m << " " << k << " " << n);
    const torch::Tensor a = torch::randn({m, k});
    const torch::Tensor b = torch::randn({k, n});
    const torch::Tensor bias = torch::randn({n});
    const torch::Tensor a_columns = Operand(a.t().contiguous()).t();
    const torch::Tensor b_columns = Operand(b.t().contiguous()).t();
    ExpectProduct(MatrixProduct(Operand(a), b_columns, bias), a, b, bias);
    ExpectProduct(MatrixProduct(a_columns, Operand(b)), a, b);
  }
}

// A factor with long columns.
TEST_P(LinearTest, AddsLongSumsUpInParts) {
  for (const int64_t depth : {511, 512, 513, 1300}) {
    SCOPED_TRACE(depth);
    const torch::Tensor a = torch::randn({1030, depth});
    const torch::Tensor b = torch::randn({depth, 40});
    const torch::Tensor bias = torch::randn({40});
    const torch::Tensor a_columns = Operand(a.t().contiguous()).t();
    ExpectProduct(MatrixProduct(a_columns, Operand(b)), a, b);
    ExpectProduct(MatrixProduct(a_columns, Operand(b), bias), a, b, bias);
  }
}

// The gradient that nobody asked for is not computed.
TEST_P(LinearTest, FinishesEachTileOnce) {
  const int threads_before = at::get_num_threads();
  // Several tiles, the last ones smaller; depths of several parts, and none.
  for (const auto& [rows, depth, columns] :
       {std::tuple(300, 96, 800), std::tuple(1, 33, 5),
        std::tuple(70, 4100, 70), std::tuple(9, 0, 4), std::tuple(0, 3, 4)}) {
    SCOPED_TRACE(testing::Message() << rows << " " << depth << " " << columns);
    const torch::Tensor a = torch::randn({rows, depth});
    const torch::Tensor b = torch::randn({columns, depth}).t();
    const torch::Tensor a_operand = Operand(a);
    const torch::Tensor b_operand = Operand(b.t()).t();
    torch::Tensor first;
    for (const int threads : {1, 3}) {
      at::set_num_threads(threads);
      const torch::Tensor found = torch::zeros({rows, columns});
      const torch::Tensor times = torch::zeros({rows, columns});
      ForEachProductTile(a_operand, b_operand, [&](const ProductTile& tile) {
        EXPECT_EQ(tile.row % kTileRows, 0);
        EXPECT_LE(tile.rows, kTileRows);
        for (int64_t r = 0; r < tile.rows; ++r) {
          const int64_t at = (tile.row + r) * found.size(1) + tile.column;
          for (int64_t c = 0; c < tile.columns; ++c) {
            found.data_ptr<float>()[at + c] = tile.sums[r * tile.stride + c];
            times.data_ptr<float>()[at + c] += 1;
          }
        }
      });
      EXPECT_TRUE(times.eq(1).all().item<bool>());
      ExpectProduct(found, a, b);
      EXPECT_TRUE(threads == 1 || found.equal(first));
      first = found;
    }
  }
  at::set_num_threads(threads_before);
}

// Several layers of one input, as each of them by itself, but for the rounding
// of sums of products.
TEST_P(LinearTest, AppliesSeveralLayers) {
  const std::vector<torch::nn::Linear> layers = {torch::nn::Linear(33, 7),
                                                 torch::nn::Linear(33, 40),
                                                 torch::nn::Linear(33, 1)};
  const auto run = [&](bool together) {
    const torch::Tensor input = input_.clone().requires_grad_(true);
    const LinearInput factor = products_.Input(input);
    std::vector<torch::Tensor> outputs;
    if (together) {
      outputs = products_.ApplyEach(factor, layers);
    } else {
      for (const torch::nn::Linear& layer : layers) {
        outputs.push_back(products_.Apply(factor, layer));
      }
    }
    std::vector<torch::Tensor> sources = {input};
    std::vector<torch::Tensor> gradients;
    torch::manual_seed(4);
    for (size_t i = 0; i < layers.size(); ++i) {
      sources.push_back(layers[i]->weight);
      sources.push_back(layers[i]->bias);
      gradients.push_back(torch::randn_like(outputs[i]));
    }
    std::vector<torch::Tensor> results =
        torch::autograd::grad(outputs, sources, gradients);
    results.insert(results.end(), outputs.begin(), outputs.end());
    return results;
  };
  const std::vector<torch::Tensor> each = run(/*together=*/false);
  const std::vector<torch::Tensor> all = run(/*together=*/true);
  ASSERT_EQ(all.size(), each.size());
  EXPECT_EQ(all[0].sizes(), input_.sizes());
  EXPECT_TRUE(IsClose(all[0], each[0], 1e-5));
  for (size_t i = 1; i < each.size(); ++i) {
    // A library may add up the products of a column of a wider matrix in
    // another order; oneDNN does so for a weight's gradient on a Zen 4.
    const bool is_weight = i <= 2 * layers.size() && i % 2 == 1;
    EXPECT_TRUE(is_weight ? IsClose(all[i], each[i], 1e-5)
                          : all[i].equal(each[i]))
        << i;
  }
}

// A layer whose output leads nowhere has gradients of zeros.
TEST_P(LinearTest, AppliesLayersThatAreNotUsed) {
  const std::vector<torch::nn::Linear> layers = {torch::nn::Linear(33, 7),
                                                 torch::nn::Linear(33, 40)};
  const torch::Tensor input = input_.clone().requires_grad_(true);
  const torch::Tensor used =
      products_.ApplyEach(products_.Input(input), layers)[1];
  const std::vector<torch::Tensor> found = torch::autograd::grad(
      {used.sum()}, {input, layers[1]->weight, layers[0]->weight}, {},
      /*retain_graph=*/c10::nullopt, /*create_graph=*/false,
      /*allow_unused=*/true);
  ExpectProduct(found[0].view({18, 33}), torch::ones({18, 40}),
                layers[1]->weight.detach());
  EXPECT_TRUE(!found[2].defined() || found[2].eq(0).all().item<bool>());
}

TEST_P(LinearTest, HasTheGradientsThatAreAskedFor) {
  const torch::Tensor input = torch::randn({4, 33}).requires_grad_(true);
  const torch::Tensor weight = torch::randn({7, 33}).requires_grad_(true);
  const torch::Tensor gradient = torch::randn({4, 7});
  const auto run = [&](const torch::Tensor& x, const torch::Tensor& w) {
    LinearProducts::Apply(products_.Input(x), products_.Weight(w))
        .backward(gradient);
  };
  run(input.detach(), weight);
  ExpectProduct(weight.grad(), gradient.t(), input.detach());
  run(input, weight.detach());
  ExpectProduct(input.grad(), gradient, weight.detach());
}

TEST_P(LinearTest, SeesThatAWeightChanged) {
  torch::Tensor weight = torch::randn({3, 4});
  const auto operand = [&] { return products_.Weight(weight).operand; };
  const auto expected = [&] {
    return IsRounded() ? weight.to(torch::kBFloat16) : weight;
  };
  const torch::Tensor first = operand();
  EXPECT_EQ(operand().data_ptr(), first.data_ptr());
  weight.mul_(2);
  EXPECT_TRUE(operand().equal(expected()));
  weight.set_data(torch::randn({5, 4}));
  EXPECT_TRUE(operand().equal(expected()));
}

// Counted writes to a part of a weight, wherever it is.
TEST_P(LinearTest, SeesThatOneNumberOfAWeightChanged) {
  torch::Tensor weight = torch::randn({30, 40});
  for (int64_t column = 0; column < weight.size(1); ++column) {
    products_.Weight(weight);
    weight[3][column].add_(1.0);
    EXPECT_TRUE(products_.Weight(weight).operand.equal(
        IsRounded() ? weight.to(torch::kBFloat16) : weight))
        << column;
  }
}

// Writes that LibTorch does not count: to the whole weight they are seen, to a
// part of it when the precision is set again.
TEST_P(LinearTest, SeesThatAWeightWasWrittenToUncounted) {
  torch::Tensor weight = torch::randn({30, 40});
  const auto expect_current = [&](const char* written) {
    EXPECT_TRUE(products_.Weight(weight).operand.equal(
        IsRounded() ? weight.to(torch::kBFloat16) : weight))
        << written;
  };
  expect_current("nothing");
  const auto version = weight._version();
  weight.data().add_(0.5);
  expect_current(".data()");
  auto* const numbers = weight.data_ptr<float>();
  std::transform(numbers, numbers + weight.numel(), numbers,
                 [](float number) { return 2 * number; });
  expect_current("data_ptr");
  EXPECT_EQ(weight._version(), version);
  torch::Tensor flat = torch::randn({1300});
  weight.set_data(flat.narrow(0, 100, 1200).view({30, 40}));
  expect_current("a flat buffer");
  flat.mul_(1.5);
  expect_current("the flat buffer in place");
  flat[105] = 7.0;
  products_.set_precision(GetParam());
  expect_current("one number");
}

TEST_P(LinearTest, TakesOtherDtypesAsTheyAre) {
  const torch::Tensor input = torch::randn({2, 4}, torch::kFloat64);
  const torch::Tensor weight = torch::randn({3, 4}, torch::kFloat64);
  EXPECT_FALSE(products_.Weight(weight).operand.defined());
  EXPECT_TRUE(
      LinearProducts::Apply(products_.Input(input), products_.Weight(weight))
          .equal(torch::linear(input, weight)));
}

TEST_P(LinearTest, RefusesGradientsOfGradients) {
  const torch::Tensor input = torch::randn({2, 4}).requires_grad_(true);
  const torch::Tensor sum =
      LinearProducts::Apply(products_.Input(input),
                            products_.Weight(torch::randn({3, 4})))
          .sum();
  EXPECT_THROW(torch::autograd::grad({sum}, {input}, {}, /*retain_graph=*/true,
                                     /*create_graph=*/true),
               c10::Error);
}

TEST_P(LinearTest, RejectsWhatDoesNotFit) {
  const torch::Tensor a = Operand(torch::zeros({2, 3}));
  const torch::ScalarType other =
      IsRounded() ? torch::kFloat32 : torch::kBFloat16;
  EXPECT_THROW(MatrixProduct(a, a), c10::Error);
  EXPECT_THROW(MatrixProduct(a, torch::zeros({3, 2}, other)), c10::Error);
  EXPECT_THROW(MatrixProduct(a, a.t(), torch::zeros({3})), c10::Error);
  EXPECT_THROW(MatrixProduct(a, a.t(), torch::zeros({2}, torch::kFloat64)),
               c10::Error);
  EXPECT_THROW(ToBfloat16(torch::zeros({2}, torch::kBFloat16)), c10::Error);
}

// Results and gradients of a layer beside the encoder, with one output and with
// more rows than LibTorch leaves to one thread.
TEST(ApplyLinearTest, GivesTheSameAtAnyNumberOfThreads) {
  const int threads_before = at::get_num_threads();
  torch::manual_seed(4);
  const torch::Tensor input = torch::randn({3, 13000, 8});
  for (const int64_t outputs : {1, 3}) {
    const torch::Tensor weight = torch::randn({outputs, 8});
    const torch::Tensor bias = torch::randn({outputs});
    const torch::Tensor gradient = torch::randn({3, 13000, outputs});
    const auto run = [&](int threads) {
      at::set_num_threads(threads);
      std::vector<torch::Tensor> leaves;
      for (const torch::Tensor& value : {input, weight, bias}) {
        leaves.push_back(value.detach().requires_grad_(true));
      }
      const torch::Tensor output = ApplyLinear(leaves[0], leaves[1], leaves[2]);
      std::vector<torch::Tensor> all =
          torch::autograd::grad({output}, leaves, {gradient});
      all.push_back(output.detach());
      return all;
    };
    const std::vector<torch::Tensor> first = run(1);
    EXPECT_TRUE(IsClose(first[3], torch::linear(input, weight, bias), 1e-5));
    EXPECT_TRUE(IsClose(first[2], gradient.flatten(0, 1).sum(0), 2e-3));
    for (const int threads : {2, 3, 4}) {
      const std::vector<torch::Tensor> again = run(threads);
      for (size_t i = 0; i < first.size(); ++i) {
        EXPECT_TRUE(again[i].equal(first[i])) << i << ", " << threads;
      }
    }
  }
  at::set_num_threads(threads_before);
}

}  // namespace
}  // namespace etc
