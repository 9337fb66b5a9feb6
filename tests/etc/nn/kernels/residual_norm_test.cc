// The end of a residual block against its definition in double, on every SIMD
// target this CPU has, between pages that may not be touched. Columns straddle
// 4, 8 and 16 lanes; with and without bias and dropout; the rows worked on are
// not all, and those before and behind stay as they are. Tolerance: values
// below 6 after a sum of up to 169 terms, 1e-5; a row of one column has no
// deviation and would divide by nearly 0, so epsilon is 1e-3.

#include "etc/nn/kernels/residual_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "etc/nn/kernels/reference.h"
#include "tests/support/each_target.h"

namespace etc::kernels {
namespace {

constexpr int64_t kColumns[] = {1, 3, 4, 7, 8, 9, 15, 16, 17, 33, 169};
constexpr int64_t kRows = 5;
constexpr int64_t kBegin = 1;
constexpr int64_t kEnd = 4;
constexpr float kEpsilon = 1e-3f;
constexpr double kTolerance = 1e-5;

struct Case {
  bool bias;
  double dropout;
};
constexpr Case kCases[] = {
    {false, 0.0}, {true, 0.0}, {false, 0.3}, {true, 0.3}};

class ResidualNormKernelTest : public EachTargetTest {};

TEST_P(ResidualNormKernelTest, SumsAndNormalisesAsTheDefinition) {
  for (const int64_t columns : kColumns) {
    for (const Case& c : kCases) {
      GuardedBuffer change = Random(kRows * columns);
      GuardedBuffer residual = Random(kRows * columns);
      GuardedBuffer bias = Random(columns), weight = Random(columns),
                    norm_bias = Random(columns);
      GuardedBuffer sum = Zeros(kRows * columns);
      GuardedBuffer sum_of_norm = Zeros(kRows * columns);
      GuardedBuffer output = Zeros(kRows * columns);
      GuardedBuffer mean = Zeros(kRows), inverse_deviation = Zeros(kRows);
      const ResidualRows rows = {.columns = columns,
                                 .change = change.data(),
                                 .bias = c.bias ? bias.data() : nullptr,
                                 .residual = residual.data(),
                                 .dropout = c.dropout,
                                 .dropout_seed = 77};
      ResidualSum(rows, kBegin, kEnd, sum.data());
      NormResults results = {.epsilon = kEpsilon,
                             .weight = weight.data(),
                             .norm_bias = norm_bias.data(),
                             .sum = sum_of_norm.data(),
                             .output = output.data(),
                             .mean = mean.data(),
                             .inverse_deviation = inverse_deviation.data()};
      ResidualNorm(rows, kBegin, kEnd, results);
      for (int64_t r = 0; r < kRows; ++r) {
        const bool worked_on = r >= kBegin && r < kEnd;
        const std::vector<double> expected_sum = ResidualSumReference(rows, r);
        const NormalRow normal =
            NormalRowReference(expected_sum, static_cast<double>(kEpsilon));
        for (int64_t i = 0; i < columns; ++i) {
          const int64_t at = r * columns + i;
          ASSERT_NEAR(sum[at], worked_on ? expected_sum[i] : 0.0, kTolerance);
          ASSERT_EQ(sum[at], sum_of_norm[at]);
          const double expected =
              normal.values[i] * static_cast<double>(weight[i]) +
              static_cast<double>(norm_bias[i]);
          ASSERT_NEAR(output[at], worked_on ? expected : 0.0, kTolerance)
              << columns << " columns, row " << r << ", column " << i;
        }
        ASSERT_NEAR(mean[r], worked_on ? normal.mean : 0.0, kTolerance);
        ASSERT_NEAR(inverse_deviation[r],
                    worked_on ? normal.inverse_deviation : 0.0,
                    kTolerance * normal.inverse_deviation);
      }
      // In place it gives the same.
      results.sum = sum.data();
      results.output = sum.data();
      ResidualNorm(rows, kBegin, kEnd, results);
      for (int64_t i = 0; i < kRows * columns; ++i) {
        ASSERT_EQ(sum[i], output[i]);
      }
    }
  }
}

TEST_P(ResidualNormKernelTest, HasTheGradientsOfTheDefinition) {
  for (const int64_t columns : kColumns) {
    for (const Case& c : kCases) {
      GuardedBuffer sum = Random(kRows * columns);
      GuardedBuffer output_gradient = Random(kRows * columns);
      GuardedBuffer weight = Random(columns);
      GuardedBuffer mean = Zeros(kRows), inverse_deviation = Zeros(kRows);
      GuardedBuffer sum_gradient = Zeros(kRows * columns);
      GuardedBuffer change = Zeros(kRows * columns);
      GuardedBuffer bias = Zeros(columns), weight_gradient = Zeros(columns),
                    norm_bias = Zeros(columns);
      std::vector<NormalRow> normal;
      for (int64_t r = 0; r < kRows; ++r) {
        normal.push_back(NormalRowReference(
            std::vector<double>(sum.data() + r * columns,
                                sum.data() + (r + 1) * columns),
            static_cast<double>(kEpsilon)));
        mean[r] = static_cast<float>(normal[r].mean);
        inverse_deviation[r] = static_cast<float>(normal[r].inverse_deviation);
      }
      ResidualNormGradient({.weight = weight.data(),
                            .sum = sum.data(),
                            .mean = mean.data(),
                            .inverse_deviation = inverse_deviation.data(),
                            .output_gradient = output_gradient.data(),
                            .sum_gradient = sum_gradient.data(),
                            .weight_gradient = weight_gradient.data(),
                            .norm_bias_gradient = norm_bias.data()},
                           {.columns = columns,
                            .dropout = c.dropout,
                            .dropout_seed = 77,
                            .change = c.dropout > 0.0 ? change.data() : nullptr,
                            .bias = c.bias ? bias.data() : nullptr},
                           kBegin, kEnd);
      std::vector<double> expected[3];  // bias, weight, norm bias
      for (std::vector<double>& sums : expected) {
        sums.resize(static_cast<size_t>(columns));
      }
      for (int64_t r = kBegin; r < kEnd; ++r) {
        std::vector<double> weighted;
        for (int64_t i = 0; i < columns; ++i) {
          const double gradient =
              static_cast<double>(output_gradient[r * columns + i]);
          weighted.push_back(gradient * static_cast<double>(weight[i]));
          expected[1][i] += gradient * normal[r].values[i];
          expected[2][i] += gradient;
        }
        const std::vector<double> of_sum =
            NormalRowGradientReference(normal[r], weighted);
        for (int64_t i = 0; i < columns; ++i) {
          const double of_change =
              of_sum[i] * ResidualDropoutReference(77, c.dropout, r, i);
          // One column: a difference of equal numbers, times 1 / sqrt(1e-3).
          ASSERT_NEAR(sum_gradient[r * columns + i], of_sum[i], 5 * kTolerance);
          if (c.dropout > 0.0) {
            ASSERT_NEAR(change[r * columns + i], of_change, 8 * kTolerance);
          }
          expected[0][i] += c.bias ? of_change : 0.0;
        }
      }
      for (int64_t i = 0; i < columns; ++i) {
        ASSERT_NEAR(bias[i], expected[0][i], 16 * kTolerance);
        ASSERT_NEAR(weight_gradient[i], expected[1][i], 4 * kTolerance);
        ASSERT_NEAR(norm_bias[i], expected[2][i], kTolerance);
      }
      for (const int64_t r : {int64_t{0}, kRows - 1}) {
        for (int64_t i = 0; i < columns; ++i) {
          ASSERT_EQ(sum_gradient[r * columns + i], 0.0f);
          ASSERT_EQ(change[r * columns + i], 0.0f);
        }
      }
    }
  }
}

TEST_P(ResidualNormKernelTest, DropsTheGradientOfTheSum) {
  for (const int64_t columns : kColumns) {
    for (const Case& c : kCases) {
      GuardedBuffer sum_gradient = Random(kRows * columns);
      GuardedBuffer change = Zeros(kRows * columns);
      GuardedBuffer bias = Zeros(columns);
      ResidualSumGradient({.columns = columns,
                           .dropout = c.dropout,
                           .dropout_seed = 77,
                           .change = c.dropout > 0.0 ? change.data() : nullptr,
                           .bias = c.bias ? bias.data() : nullptr},
                          kBegin, kEnd, sum_gradient.data());
      std::vector<double> expected(static_cast<size_t>(columns));
      for (int64_t r = kBegin; r < kEnd; ++r) {
        for (int64_t i = 0; i < columns; ++i) {
          const double of_change =
              static_cast<double>(sum_gradient[r * columns + i]) *
              ResidualDropoutReference(77, c.dropout, r, i);
          if (c.dropout > 0.0) {
            ASSERT_NEAR(change[r * columns + i], of_change, kTolerance);
          }
          expected[i] += c.bias ? of_change : 0.0;
        }
      }
      for (int64_t i = 0; i < columns; ++i) {
        ASSERT_NEAR(bias[i], expected[i], kTolerance);
      }
    }
  }
}

ETC_INSTANTIATE_FOR_EACH_TARGET(ResidualNormKernelTest);

}  // namespace
}  // namespace etc::kernels
