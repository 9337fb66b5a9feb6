// The sliced loss of masked tokens against all logits at once.
//
// Sizes: slices of one column, of some that do not divide the vocabulary, and
// of everything; more rows than one slice takes (4096); none. In float64 both
// are the same formula in another order of sums, so 1e-12; gradients also
// against central differences. In float32 on the CPU the error may be twice
// that of the reference, plus a rounding. Bits must not depend on threads.
// In bfloat16 products errors are those of the operands, 2^-9 relative.
#include "tasks/pretrain/heads/mlm_loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <limits>
#include <utility>
#include <vector>

#include "base/bfloat16.h"
#include "tests/support/gradient_check.h"
#include "tests/support/tensor_matchers.h"
#include "tests/support/thread_counts.h"

namespace etc {
namespace {

// Random inputs that require gradients, of `rows` predictions.
MlmDecoderInput RandomInput(int64_t rows, int64_t width, int64_t vocabulary,
                            torch::ScalarType type) {
  torch::manual_seed(rows + 3);
  const auto leaf = [&](at::IntArrayRef shape) {
    return torch::randn(shape, torch::kFloat64).to(type).requires_grad_(true);
  };
  return {.hidden = leaf({rows, width}),
          .table = leaf({vocabulary, width}),
          .bias = leaf({vocabulary}),
          .labels = torch::randint(vocabulary, {rows}, torch::kInt64)};
}

MlmDecoderInput As(const MlmDecoderInput& input, torch::ScalarType type) {
  const auto leaf = [&](const torch::Tensor& tensor) {
    return tensor.detach().to(type).requires_grad_(true);
  };
  return {.hidden = leaf(input.hidden),
          .table = leaf(input.table),
          .bias = leaf(input.bias),
          .labels = input.labels};
}

// Losses and the gradients of a weighted sum of them.
std::vector<torch::Tensor> WithGradients(const MlmDecoderInput& input,
                                         const MlmLosses& result) {
  const torch::Tensor weights =
      torch::linspace(0.5, 2, result.losses.size(0), result.losses.options());
  std::vector<torch::Tensor> all =
      torch::autograd::grad({(result.losses * weights.detach()).sum()},
                            {input.hidden, input.table, input.bias});
  all.push_back(result.losses.detach());
  return all;
}

TEST(MlmLossTest, MatchesAllLogitsAtOnceInAnySlices) {
  for (const int64_t rows : {1, 2, 7, 64}) {
    const MlmDecoderInput input = RandomInput(rows, 5, 37, torch::kFloat64);
    const MlmLosses expected = ComputeMlmLossesReference(input);
    const auto gradients = WithGradients(input, expected);
    // Runs with all slices kept, none, and some.
    for (const auto& [bytes, kept_bytes] :
         {std::pair(1, 1 << 20), std::pair(8 * 64 * 3, 0),
          std::pair(8 * 64 * 10, static_cast<int>(rows) * 8 * 20),
          std::pair(1 << 20, 1 << 20), std::pair(0, 0)}) {
      const MlmLosses actual = ComputeMlmLosses(
          input, {.slice_bytes = bytes, .kept_bytes = kept_bytes});
      EXPECT_TRUE(actual.correct.equal(expected.correct));
      const auto sliced = WithGradients(input, actual);
      for (size_t i = 0; i < sliced.size(); ++i) {
        EXPECT_TRUE(IsClose(sliced[i], gradients[i], /*atol=*/1e-12))
            << rows << " rows, slices of " << bytes << " bytes, tensor " << i;
      }
    }
  }
}

// Kept slices are overwritten by the first pass.
TEST(MlmLossTest, CanGoBackTwice) {
  const MlmDecoderInput input = RandomInput(7, 5, 37, torch::kFloat64);
  const torch::Tensor sum =
      ComputeMlmLosses(input, {.slice_bytes = 8 * 7 * 10}).losses.sum();
  const std::vector<torch::Tensor> inputs = {input.hidden, input.table,
                                             input.bias};
  const auto first =
      torch::autograd::grad({sum}, inputs, {}, /*retain_graph=*/true);
  const auto second = torch::autograd::grad({sum}, inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_GT(first[i].abs().max().item<double>(), 0);
    EXPECT_TRUE(IsClose(second[i], first[i], /*atol=*/1e-14)) << i;
  }
}

TEST(MlmLossTest, MatchesWithMoreRowsThanASliceHas) {
  const MlmDecoderInput input = RandomInput(9001, 3, 5, torch::kFloat64);
  const MlmLosses expected = ComputeMlmLossesReference(input);
  const MlmLosses actual = ComputeMlmLosses(input, {.slice_bytes = 100'000});
  EXPECT_TRUE(actual.correct.equal(expected.correct));
  EXPECT_GT(actual.correct.sum().item<int64_t>(), 0);
  const auto sliced = WithGradients(input, actual);
  const auto gradients = WithGradients(input, expected);
  for (size_t i = 0; i < sliced.size(); ++i) {
    EXPECT_TRUE(IsClose(sliced[i], gradients[i], /*atol=*/1e-10)) << i;
  }
}

TEST(MlmLossTest, GradientsMatchDifferences) {
  const MlmDecoderInput input = RandomInput(6, 4, 11, torch::kFloat64);
  EXPECT_TRUE(GradientsMatchDifferences(
      [&] {
        return ComputeMlmLosses(
                   input, {.slice_bytes = 8 * 6 * 4, .kept_bytes = 8 * 6 * 5})
            .losses.sum();
      },
      {{"hidden", input.hidden},
       {"table", input.table},
       {"bias", input.bias}}));
}

TEST(MlmLossTest, Float32IsAsExactAsTheReference) {
  const MlmDecoderInput exact = RandomInput(50, 64, 3001, torch::kFloat64);
  const MlmDecoderInput input = As(exact, torch::kFloat32);
  // Exact results for the rounded inputs.
  const MlmDecoderInput rounded = As(input, torch::kFloat64);
  const auto truth = WithGradients(rounded, ComputeMlmLossesReference(rounded));
  const auto plain = WithGradients(input, ComputeMlmLossesReference(input));
  const auto sliced = WithGradients(
      input, ComputeMlmLosses(input, {.slice_bytes = 4 * 50 * 700}));
  for (size_t i = 0; i < truth.size(); ++i) {
    EXPECT_LE(MaxError(sliced[i], truth[i]),
              2 * MaxError(plain[i], truth[i]) + 1e-6)
        << "tensor " << i;
  }
}

TEST(MlmLossTest, IsTheSameOnAnyNumberOfThreads) {
  for (const int64_t rows : {3, 777}) {
    const MlmDecoderInput input = RandomInput(rows, 33, 1999, torch::kFloat32);
    ExpectSameOnAnyNumberOfThreads([&] {
      return WithGradients(
          input, ComputeMlmLosses(input, {.slice_bytes = 4 * rows * 501}));
    });
  }
}

TEST(MlmLossTest, RoundsFactorsWhereProductsAreInBfloat16) {
  if (kernels::Bfloat16ProductsOfThisCpu() ==
      kernels::Bfloat16Products::kNone) {
    GTEST_SKIP() << "this CPU has no products in bfloat16";
  }
  const MlmDecoderInput input = RandomInput(40, 32, 501, torch::kFloat32);
  const auto plain = WithGradients(input, ComputeMlmLosses(input));
  const auto rounded = WithGradients(
      input, ComputeMlmLosses(input, {.precision = LinearPrecision::kBfloat16,
                                      .slice_bytes = 4 * 40 * 100}));
  for (size_t i = 0; i < plain.size(); ++i) {
    const double error = MaxError(rounded[i], plain[i]);
    EXPECT_GT(error, 0) << i;
    EXPECT_LT(error, 0.05 * (1 + plain[i].abs().max().item<double>())) << i;
  }
}

TEST(MlmLossTest, HalfPrecisionIsSummedInFloat32) {
  const MlmDecoderInput input = RandomInput(9, 16, 101, torch::kBFloat16);
  const MlmDecoderInput exact = As(input, torch::kFloat64);
  const MlmLosses actual = ComputeMlmLosses(input, {.slice_bytes = 4 * 9 * 20});
  EXPECT_EQ(actual.losses.scalar_type(), torch::kFloat32);
  const auto sliced = WithGradients(input, actual);
  EXPECT_EQ(sliced[1].scalar_type(), torch::kBFloat16);
  const auto truth = WithGradients(exact, ComputeMlmLossesReference(exact));
  for (size_t i = 0; i < truth.size(); ++i) {
    // Logits reach 16, of which bfloat16 has 8 bits.
    EXPECT_LT(MaxError(sliced[i], truth[i]), 0.3) << i;
  }
}

TEST(MlmLossTest, CountsTheFirstOfEqualLogits) {
  const MlmDecoderInput input = {
      .hidden = torch::zeros({2, 3}),
      .table = torch::zeros({6, 3}),
      .bias = torch::tensor({0.0F, 1.0F, 0.0F, 1.0F, 0.0F, 1.0F}),
      .labels = torch::tensor({1, 3}, torch::kInt64)};
  for (const int64_t bytes : {1, 4 * 2 * 2, 1024}) {
    const MlmLosses result = ComputeMlmLosses(input, {.slice_bytes = bytes});
    EXPECT_TRUE(result.correct[0].item<bool>());
    EXPECT_FALSE(result.correct[1].item<bool>());
  }
  EXPECT_FALSE(ComputeMlmLossesReference(input).correct[1].item<bool>());
}

TEST(MlmLossTest, LargeLogitsStayFinite) {
  MlmDecoderInput input = RandomInput(4, 2, 9, torch::kFloat32);
  {
    const torch::NoGradGuard no_grad;
    input.bias[3] = 1e30;
    input.bias[8] = -1e30;
  }
  input.labels.fill_(3);
  const MlmLosses result = ComputeMlmLosses(input, {.slice_bytes = 4 * 4 * 2});
  const auto all = WithGradients(input, result);
  EXPECT_EQ(result.losses.sum().item<double>(), 0);
  for (const torch::Tensor& tensor : all) {
    EXPECT_TRUE(torch::isfinite(tensor).all().item<bool>());
  }
}

TEST(MlmLossTest, WithoutPredictionsIsZeroAndHasZeroGradients) {
  const MlmDecoderInput input = RandomInput(0, 4, 7, torch::kFloat32);
  const MlmLosses result = ComputeMlmLosses(input);
  EXPECT_EQ(result.losses.sizes(), at::IntArrayRef({0}));
  EXPECT_EQ(result.correct.sum().item<int64_t>(), 0);
  EXPECT_EQ(result.losses.sum().item<double>(), 0);
  for (const torch::Tensor& gradient : torch::autograd::grad(
           {result.losses.sum()}, {input.hidden, input.table, input.bias})) {
    EXPECT_TRUE(gradient.eq(0).all().item<bool>());
  }
}

TEST(MlmLossTest, LeavesOutGradientsThatNobodyWants) {
  MlmDecoderInput input = RandomInput(5, 4, 7, torch::kFloat32);
  input.table = input.table.detach();
  const auto gradients = torch::autograd::grad(
      {ComputeMlmLosses(input).losses.sum()}, {input.hidden, input.bias});
  const MlmDecoderInput all = RandomInput(5, 4, 7, torch::kFloat32);
  const auto expected = torch::autograd::grad(
      {ComputeMlmLosses(all).losses.sum()}, {all.hidden, all.bias});
  EXPECT_TRUE(gradients[0].equal(expected[0]));
  EXPECT_TRUE(gradients[1].equal(expected[1]));
}

TEST(MlmLossTest, RefusesWhatItIsNotFor) {
  const MlmDecoderInput good = RandomInput(3, 4, 7, torch::kFloat32);
  MlmDecoderInput bad = good;
  bad.labels = torch::tensor({0, 7, 1}, torch::kInt64);
  EXPECT_THROW(ComputeMlmLosses(bad), c10::Error);
  bad.labels = torch::tensor({0, -1, 1}, torch::kInt64);
  EXPECT_THROW(ComputeMlmLosses(bad), c10::Error);
  bad = good;
  bad.labels = good.labels.slice(0, 1);
  EXPECT_THROW(ComputeMlmLosses(bad), c10::Error);
  bad = good;
  bad.bias = torch::zeros({6});
  EXPECT_THROW(ComputeMlmLosses(bad), c10::Error);
  bad = good;
  bad.table = torch::zeros({7, 5});
  EXPECT_THROW(ComputeMlmLosses(bad), c10::Error);
  bad = good;
  bad.bias = good.bias.to(torch::kFloat64);
  EXPECT_THROW(ComputeMlmLosses(bad), c10::Error);
  EXPECT_THROW(ComputeMlmLosses(good, {.slice_bytes = -1}), c10::Error);
  EXPECT_THROW(torch::autograd::grad(
                   {ComputeMlmLosses(good).losses.sum()}, {good.hidden}, {},
                   /*retain_graph=*/true, /*create_graph=*/true),
               c10::Error);
}

}  // namespace
}  // namespace etc
