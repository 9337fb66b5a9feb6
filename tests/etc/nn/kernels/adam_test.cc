// The Adam kernels against their formulas in double, on every SIMD target this
// CPU has, between pages that may not be touched. Counts straddle 4, 8 and 16
// lanes and the rows in which squares are summed. Tolerance: a dozen roundings
// of numbers around 1, and n of a sum of n, taken in parallel lanes.

#include "etc/nn/kernels/adam.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/support/each_target.h"

namespace etc::kernels {
namespace {

constexpr int64_t kCounts[] = {0, 1, 3, 7, 8, 9, 15, 16, 17, 33, 1025, 2100};
constexpr AdamStep kStep = {.gradient_factor = 0.7,
                            .beta1 = 0.8,
                            .beta2 = 0.9,
                            .root_factor = 1.3,
                            .epsilon = 1e-2,
                            .decay = 0.1,
                            .rate = 0.05};
constexpr double kTolerance = 2e-6;

class AdamKernelTest : public EachTargetTest {
 protected:
  struct Data {
    GuardedBuffer gradient, mean, mean_square, parameter;
    AdamElements elements;
  };
  Data Make(int64_t count) {
    Data data = {.gradient = Random(count),
                 .mean = Random(count),
                 .mean_square = Random(count),
                 .parameter = Random(count)};
    for (int64_t i = 0; i < count; ++i) {
      data.mean_square[i] = std::abs(data.mean_square[i]) + 0.1f;
    }
    data.elements = {.count = count,
                     .gradient = data.gradient.data(),
                     .mean = data.mean.data(),
                     .mean_square = data.mean_square.data(),
                     .parameter = data.parameter.data()};
    return data;
  }
};

struct Expected {
  std::vector<double> mean, mean_square, direction, parameter;
  SquaredNorms norms;
};

Expected Formulas(const AdamElements& e) {
  Expected result;
  for (int64_t i = 0; i < e.count; ++i) {
    const double p = static_cast<double>(e.parameter[i]);
    const double g = kStep.gradient_factor * static_cast<double>(e.gradient[i]);
    const double m =
        kStep.beta1 * static_cast<double>(e.mean[i]) + (1 - kStep.beta1) * g;
    const double v = kStep.beta2 * static_cast<double>(e.mean_square[i]) +
                     (1 - kStep.beta2) * g * g;
    const double u = m / (kStep.root_factor * std::sqrt(v) + kStep.epsilon) +
                     kStep.decay * p;
    result.mean.push_back(m);
    result.mean_square.push_back(v);
    result.parameter.push_back(p - kStep.rate * u);
    result.norms.parameter += p * p;
    result.norms.direction += u * u;
  }
  return result;
}

void ExpectUpdated(const AdamElements& e, const Expected& expected) {
  for (int64_t i = 0; i < e.count; ++i) {
    ASSERT_NEAR(e.mean[i], expected.mean[i], kTolerance) << i;
    ASSERT_NEAR(e.mean_square[i], expected.mean_square[i], kTolerance) << i;
    ASSERT_NEAR(e.parameter[i], expected.parameter[i], kTolerance) << i;
  }
}

TEST_P(AdamKernelTest, UpdatesByTheFormulas) {
  for (const int64_t count : kCounts) {
    const Data data = Make(count);
    const Expected expected = Formulas(data.elements);
    UpdateParameter(kStep, data.elements);
    ExpectUpdated(data.elements, expected);
  }
}

TEST_P(AdamKernelTest, UpdatesInTwoPassesAsInOne) {
  for (const int64_t count : kCounts) {
    const Data data = Make(count);
    const Expected expected = Formulas(data.elements);
    const SquaredNorms norms = UpdateMeans(kStep, data.elements);
    EXPECT_NEAR(norms.parameter, expected.norms.parameter,
                kTolerance * expected.norms.parameter);
    EXPECT_NEAR(norms.direction, expected.norms.direction,
                kTolerance * expected.norms.direction);
    MoveParameter(kStep, data.elements);
    ExpectUpdated(data.elements, expected);
  }
}

TEST_P(AdamKernelTest, AddsUpSquares) {
  for (const int64_t count : kCounts) {
    GuardedBuffer values = Random(count);
    double expected = 0.0;
    for (int64_t i = 0; i < count; ++i) {
      expected +=
          static_cast<double>(values[i]) * static_cast<double>(values[i]);
    }
    EXPECT_NEAR(SquaredNorm(count, values.data()), expected,
                kTolerance * expected);
  }
}

ETC_INSTANTIATE_FOR_EACH_TARGET(AdamKernelTest);

}  // namespace
}  // namespace etc::kernels
