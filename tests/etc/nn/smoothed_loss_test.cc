// The loss with label smoothing: the golden numbers of doc/translation.md 11.1;
// in float64 against the definition to 1e-12 and its gradients against central
// differences; in float32 and bfloat16 as good as LibTorch's operations in that
// precision (ExpectAsExact's bound for the first), over several chunks and any
// number of threads; padding; errors.

#include "etc/nn/smoothed_loss.h"

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>

#include <vector>

#include "base/bfloat16.h"
#include "base/linear.h"
#include "tests/support/error_message.h"
#include "tests/support/exactness.h"
#include "tests/support/gradient_check.h"
#include "tests/support/tensor_matchers.h"
#include "tests/support/thread_counts.h"

namespace etc {
namespace {

TEST(SmoothedLossTest, HasTheGoldenValues) {
  const torch::Tensor logits = torch::tensor({1.0, 2.0, 3.0, -1.0});
  const auto of_target = [&](int64_t target) {
    // States are logits: the table is the identity.
    return SmoothedCrossEntropy({.states = logits.to(torch::kFloat64),
                                 .weight = torch::eye(4, torch::kFloat64),
                                 .targets = torch::tensor(target),
                                 .smoothing = 0.1});
  };
  EXPECT_NEAR(of_target(2).nll.item<double>(), 0.419717, 6e-7);
  EXPECT_NEAR(of_target(2).loss.item<double>(), 0.594717, 6e-7);
  EXPECT_NEAR(of_target(3).nll.item<double>(), 4.419717, 6e-7);
  EXPECT_NEAR(of_target(3).loss.item<double>(), 4.194717, 6e-7);
  EXPECT_EQ(of_target(1).tokens, 0);
  EXPECT_EQ(of_target(1).loss.item<double>(), 0.0);
}

struct LossCase {
  torch::Tensor states, weight, targets;

  LossCase(int64_t tokens, int64_t hidden, int64_t vocabulary) {
    torch::manual_seed(4);
    states = torch::randn({tokens, hidden}, torch::kFloat64);
    weight = torch::randn({vocabulary, hidden}, torch::kFloat64);
    targets = torch::randint(vocabulary, {tokens}, torch::kInt64);
  }

  struct Results {
    SmoothedLoss loss;
    std::vector<torch::Tensor> all;  // losses, then gradients
  };
  Results Run(torch::ScalarType type,
              SmoothedLoss (*function)(const SmoothedLossInput&),
              LinearPrecision precision = LinearPrecision::kFloat32) const {
    const torch::Tensor x = states.to(type).clone().requires_grad_();
    const torch::Tensor table = weight.to(type).clone().requires_grad_();
    LinearProducts products;
    products.set_precision(precision);
    Results results = {.loss = function({.states = x,
                                         .weight = table,
                                         .factor = products.Weight(table),
                                         .targets = targets,
                                         .smoothing = 0.1})};
    results.all = torch::autograd::grad({results.loss.loss}, {x, table},
                                        {torch::full({}, 0.5, type)});
    results.all.push_back(results.loss.loss.detach());
    results.all.push_back(results.loss.nll);
    return results;
  }
};

TEST(SmoothedLossTest, EqualsTheDefinition) {
  // One chunk and a part of a second; columns with a tail on every target.
  const LossCase c(1100, 5, 37);
  const auto exact = c.Run(torch::kFloat64, SmoothedCrossEntropyReference);
  const auto fast = c.Run(torch::kFloat64, SmoothedCrossEntropy);
  EXPECT_EQ(fast.loss.tokens, c.targets.ne(1).sum().item<int64_t>());
  EXPECT_LT(fast.loss.tokens, 1100);
  for (size_t i = 0; i < exact.all.size(); ++i) {
    EXPECT_TRUE(IsClose(fast.all[i], exact.all[i], 1e-10)) << i;
  }
  // Rows of padding have no gradient.
  EXPECT_TRUE(fast.all[0].index({c.targets.eq(1)}).eq(0).all().item<bool>());
  ExpectAsExact(c.Run(torch::kFloat32, SmoothedCrossEntropy).all,
                c.Run(torch::kFloat32, SmoothedCrossEntropyReference).all,
                exact.all,
                /*times=*/2, "float32");
}

TEST(SmoothedLossTest, RoundsOperandsOnlyInBfloat16) {
  if (kernels::Bfloat16ProductsOfThisCpu() ==
      kernels::Bfloat16Products::kNone) {
    GTEST_SKIP() << "this CPU has no products of bfloat16";
  }
  const LossCase c(300, 64, 100);
  const auto exact = c.Run(torch::kFloat64, SmoothedCrossEntropyReference);
  const auto rounded =
      c.Run(torch::kFloat32, SmoothedCrossEntropy, LinearPrecision::kBfloat16);
  for (size_t i = 0; i < exact.all.size(); ++i) {
    const double largest = exact.all[i].abs().max().item<double>();
    EXPECT_TRUE(IsClose(rounded.all[i], exact.all[i], 0.02 * largest)) << i;
  }
}

TEST(SmoothedLossTest, GradientsMatchDifferences) {
  const LossCase c(7, 3, 6);
  const torch::Tensor states = c.states.clone().requires_grad_();
  const torch::Tensor weight = c.weight.clone().requires_grad_();
  for (const double smoothing : {0.0, 0.1}) {
    EXPECT_TRUE(GradientsMatchDifferences(
        [&] {
          return SmoothedCrossEntropy({.states = states,
                                       .weight = weight,
                                       .targets = c.targets,
                                       .smoothing = smoothing})
              .loss;
        },
        {{"states", states}, {"weight", weight}}));
  }
}

TEST(SmoothedLossTest, IsTheSameOnAnyNumberOfThreads) {
  const LossCase c(1500, 16, 70);
  ExpectSameOnAnyNumberOfThreads(
      [&] { return c.Run(torch::kFloat32, SmoothedCrossEntropy).all; });
}

TEST(SmoothedLossTest, RefusesWhatDoesNotFit) {
  using testing::HasSubstr;
  const LossCase c(4, 3, 6);
  const auto message = [&](const SmoothedLossInput& input) {
    return MessageOf([&] { SmoothedCrossEntropy(input); });
  };
  SmoothedLossInput good = {
      .states = c.states, .weight = c.weight, .targets = c.targets};
  EXPECT_EQ(message(good), "nothing was thrown");
  SmoothedLossInput input = good;
  input.targets = torch::full({4}, 6, torch::kInt64);
  EXPECT_THAT(message(input), HasSubstr("targets should be in [0, 6)"));
  input.targets = c.targets.narrow(0, 0, 3);
  EXPECT_THAT(message(input), HasSubstr("[4], but is [3]"));
  input = good;
  input.states = c.states.narrow(1, 0, 2);
  EXPECT_THAT(message(input), HasSubstr("states should be [..., 3]"));
  input.states = c.states.to(torch::kFloat32);
  EXPECT_THAT(message(input), HasSubstr("states should be Double"));
  input = good;
  input.smoothing = 1.0;
  EXPECT_THAT(message(input), HasSubstr("smoothing should be in [0, 1)"));
}

}  // namespace
}  // namespace etc
