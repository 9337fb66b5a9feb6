// Dropout factors as tensor operations against the scalar generator of the
// kernels (base/random.h), bit for bit, and their share of zeros.

#include "attention/dropout_factors.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cstdint>

#include "attention/attention_inputs.h"
#include "attention/attention_problem.h"
#include "base/random.h"
#include "tests/support/attention_case.h"

namespace etc {
namespace {

constexpr uint64_t kSeed = 0xfedcba9876543210u;
constexpr double kProbability = 0.3;

SoftmaxPattern PatternOf(QuerySide side) {
  const AttentionCase c = {.longs = 40, .globals = 7, .radius = 6};
  return MakeAttention(c).Softmax(side, 2, c.longs, c.globals, c.radius);
}

// Factors of heads 2 and 3 of a layer, of which the problem has heads 1 to 4.
ScorePair Factors(const SoftmaxPattern& pattern, torch::ScalarType type) {
  AttentionProblem problem;
  problem.operands.query = torch::empty({2, 4, pattern.queries, 1}, type);
  problem.pattern = pattern;
  problem.dropout = kProbability;
  problem.dropout_seed = kSeed;
  problem.first_head = 1;
  return DropoutFactors(problem, {.begin = 1, .count = 2});
}

void ExpectScalarFactors(const torch::Tensor& factors, int block,
                         int64_t shift_of_row, int64_t shift) {
  for (int64_t b = 0; b < factors.size(0); ++b) {
    for (int64_t h = 0; h < factors.size(1); ++h) {
      for (int64_t i = 0; i < factors.size(2); ++i) {
        const kernels::DropoutRow row = kernels::MakeDropoutRow(
            kernels::DropoutHeadSeed(kSeed, b, h + 2), i, block);
        for (int64_t c = 0; c < factors.size(3); ++c) {
          const auto key = static_cast<uint32_t>(c + shift_of_row * i - shift);
          ASSERT_EQ(factors[b][h][i][c].item<float>(),
                    kernels::DropoutFactor(row, key, kProbability))
              << b << " " << h << " " << i << " " << c;
        }
      }
    }
  }
}

TEST(DropoutFactorsTest, AreThoseOfTheKernels) {
  const ScorePair longs = Factors(PatternOf(QuerySide::kLong), torch::kFloat32);
  ExpectScalarFactors(longs.own, 0, 1, 6);
  ExpectScalarFactors(longs.other, 1, 0, 0);
  const ScorePair globals =
      Factors(PatternOf(QuerySide::kGlobal), torch::kFloat32);
  ExpectScalarFactors(globals.own, 0, 0, 0);
  ExpectScalarFactors(globals.other, 1, 0, 0);
}

TEST(DropoutFactorsTest, DropAsManyAsTheyShouldInEveryDtype) {
  for (const torch::ScalarType type : {torch::kFloat32, torch::kFloat64}) {
    const torch::Tensor own = Factors(PatternOf(QuerySide::kLong), type).own;
    EXPECT_EQ(own.scalar_type(), type);
    EXPECT_EQ(own.sizes(), torch::IntArrayRef({2, 2, 40, 13}));
    const double kept = own.ne(0).to(torch::kFloat64).mean().item<double>();
    // 2080 draws: a standard deviation of 0.01.
    EXPECT_NEAR(kept, 1.0 - kProbability, 0.04);
    EXPECT_NEAR(own.max().item<double>(), 1.0 / (1.0 - kProbability), 1e-6);
  }
}

}  // namespace
}  // namespace etc
