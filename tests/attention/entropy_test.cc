// EntropyOfWeights against sums of EntropyTerm in double, of rows with zeros
// and with weights down to the smallest numbers. Tolerances: in float64 the
// order of adding 300 terms, in float32 that and a rounded logarithm of at
// most 88.

#include "attention/entropy.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <utility>

#include "attention/entropy_term.h"

namespace etc {
namespace {

TEST(EntropyTest, IsTheSumOfItsTerms) {
  torch::manual_seed(7);
  torch::Tensor logits = torch::randn({4, 3, 300}, torch::kFloat64) * 20;
  logits.narrow(2, 0, 40).fill_(-10000.0);
  const torch::Tensor exact = logits.softmax(-1);
  for (const auto& [dtype, tolerance] :
       {std::pair(torch::kFloat64, 1e-12), std::pair(torch::kFloat32, 2e-5)}) {
    const torch::Tensor p = exact.to(dtype);
    const torch::Tensor entropy = EntropyOfWeights(p);
    ASSERT_EQ(entropy.sizes(), (torch::IntArrayRef{4, 3}));
    EXPECT_EQ(entropy.scalar_type(), dtype);
    for (int64_t i = 0; i < 4; ++i) {
      for (int64_t j = 0; j < 3; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < 300; ++k) {
          sum += EntropyTerm(p[i][j][k].item<double>());
        }
        EXPECT_NEAR(entropy[i][j].item<double>(), sum, tolerance);
      }
    }
  }
}

TEST(EntropyTest, ZerosHaveNone) {
  EXPECT_EQ(EntropyTerm(0.0), 0.0);
  EXPECT_EQ(EntropyTerm(1.0), 0.0);
  EXPECT_EQ(EntropyOfWeights(torch::zeros({2, 5})).sum().item<float>(), 0.0f);
  EXPECT_EQ(EntropyOfWeights(torch::zeros({2, 0})).sum().item<float>(), 0.0f);
  EXPECT_NEAR(EntropyOfWeights(torch::full({512}, 1.0 / 512)).item<float>(),
              std::log(512.0), 1e-5);
}

}  // namespace
}  // namespace etc
