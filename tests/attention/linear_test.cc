// Linear layers in bfloat16 against products of the rounded operands in
// float64, rounded by LibTorch: sums are in float32, so errors may be twice
// those of a float32 product of the same operands, plus 3e-7 of the largest
// value. Odd sizes, sizes 1 and 0, factors transposed and cut out of others.
// Skipped where the CPU has no such products.

#include "attention/linear.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>

#include <vector>

#include "attention/kernels/bfloat16.h"
#include "tests/support/tensor_matchers.h"

namespace etc {
namespace {

class LinearTest : public testing::Test {
 protected:
  void SetUp() override {
    if (kernels::Bfloat16ProductsOfThisCpu() ==
        kernels::Bfloat16Products::kNone) {
      GTEST_SKIP() << "this CPU has no products of bfloat16";
    }
    torch::manual_seed(3);
  }
};

torch::Tensor RoundedTo(const torch::Tensor& tensor, torch::ScalarType type) {
  return tensor.to(torch::kBFloat16).to(type);
}

// `actual` as a product of `a` and `b`, rounded, plus `bias`.
void ExpectProduct(const torch::Tensor& actual, const torch::Tensor& a,
                   const torch::Tensor& b, const torch::Tensor& bias = {}) {
  const auto product = [&](torch::ScalarType type) {
    const torch::Tensor result =
        torch::matmul(RoundedTo(a, type), RoundedTo(b, type));
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

TEST_F(LinearTest, MultipliesMatricesOfAnyLayout) {
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
    const torch::Tensor a_rows = ToBfloat16(a), b_rows = ToBfloat16(b);
    const torch::Tensor a_columns = ToBfloat16(a.t()).t();
    const torch::Tensor b_columns = ToBfloat16(b.t()).t();
    const torch::Tensor wide =
        torch::cat({b_rows, b_rows}, 1).narrow(1, s.n, s.n);
    const torch::Tensor sparse = torch::stack({a_rows, a_rows}, 2).select(2, 1);
    ExpectProduct(Bfloat16Product(a_rows, b_rows), a, b);
    ExpectProduct(Bfloat16Product(a_rows, b_columns, bias), a, b, bias);
    ExpectProduct(Bfloat16Product(a_columns, b_rows), a, b);
    ExpectProduct(Bfloat16Product(a_columns, b_columns), a, b);
    ExpectProduct(Bfloat16Product(sparse, wide), a, b);
  }
}

TEST_F(LinearTest, HasTheGradientsOfRoundedProducts) {
  for (const bool with_bias : {false, true}) {
    const torch::Tensor input = torch::randn({2, 9, 33}).requires_grad_(true);
    const torch::Tensor weight = torch::randn({7, 33}).requires_grad_(true);
    const torch::Tensor bias =
        with_bias ? torch::randn({7}).requires_grad_(true) : torch::Tensor();
    LinearProducts products;
    products.set_precision(LinearPrecision::kBfloat16);
    const torch::Tensor output =
        products.Apply(products.Input(input), weight, bias);
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

TEST_F(LinearTest, GivesTheSameAtAnyNumberOfThreads) {
  const int threads_before = at::get_num_threads();
  // Forward, and the gradient of a weight: few results of long sums.
  for (const auto& [rows, depth, columns] :
       {std::tuple(300, 96, 200), std::tuple(64, 2000, 96)}) {
    const torch::Tensor a = ToBfloat16(torch::randn({rows, depth}));
    const torch::Tensor b = ToBfloat16(torch::randn({depth, columns}));
    at::set_num_threads(1);
    const torch::Tensor first = Bfloat16Product(a, b);
    for (const int threads : {2, 3}) {
      at::set_num_threads(threads);
      EXPECT_TRUE(Bfloat16Product(a, b).equal(first)) << threads;
    }
  }
  at::set_num_threads(threads_before);
}

TEST_F(LinearTest, SeesThatAWeightChanged) {
  LinearProducts products;
  products.set_precision(LinearPrecision::kBfloat16);
  torch::Tensor weight = torch::randn({3, 4});
  const torch::Tensor first = products.Rounded(weight);
  EXPECT_TRUE(products.Rounded(weight).is_same(first));
  weight.mul_(2);
  EXPECT_TRUE(products.Rounded(weight).equal(weight.to(torch::kBFloat16)));
  weight.set_data(torch::randn({5, 4}));
  EXPECT_TRUE(products.Rounded(weight).equal(weight.to(torch::kBFloat16)));
}

TEST_F(LinearTest, TakesOtherDtypesAsTheyAre) {
  LinearProducts products;
  products.set_precision(LinearPrecision::kBfloat16);
  const torch::Tensor input = torch::randn({2, 4}, torch::kFloat64);
  const torch::Tensor weight = torch::randn({3, 4}, torch::kFloat64);
  EXPECT_TRUE(products.Apply(products.Input(input), weight)
                  .equal(torch::linear(input, weight)));
}

TEST_F(LinearTest, IsExactInFloat32) {
  LinearProducts products;
  const torch::Tensor input = torch::randn({2, 4});
  const torch::Tensor weight = torch::randn({3, 4});
  EXPECT_FALSE(products.Rounded(weight).defined());
  EXPECT_TRUE(products.Apply(products.Input(input), weight)
                  .equal(torch::linear(input, weight)));
}

TEST_F(LinearTest, RefusesGradientsOfGradients) {
  LinearProducts products;
  products.set_precision(LinearPrecision::kBfloat16);
  const torch::Tensor input = torch::randn({2, 4}).requires_grad_(true);
  const torch::Tensor sum =
      products.Apply(products.Input(input), torch::randn({3, 4})).sum();
  EXPECT_THROW(torch::autograd::grad({sum}, {input}, {}, /*retain_graph=*/true,
                                     /*create_graph=*/true),
               c10::Error);
}

TEST_F(LinearTest, RejectsWhatDoesNotFit) {
  const torch::Tensor a = torch::zeros({2, 3}, torch::kBFloat16);
  EXPECT_THROW(Bfloat16Product(a, a), c10::Error);
  EXPECT_THROW(Bfloat16Product(a, torch::zeros({3, 2})), c10::Error);
  EXPECT_THROW(Bfloat16Product(a, a.t(), torch::zeros({3})), c10::Error);
  EXPECT_THROW(ToBfloat16(a), c10::Error);
}

}  // namespace
}  // namespace etc
