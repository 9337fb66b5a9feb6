// Rows of the loss with label smoothing against the formula in double, on every
// SIMD target this CPU has, between pages that may not be touched. Columns
// straddle 4, 8 and 16 lanes, so that each tail is run; one row is of the size
// of a vocabulary. Tolerances: exponents up to 20 in size are rounded to 2^-20,
// and sums are of float32.

#include "etc/nn/kernels/smoothed_loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/support/each_target.h"

namespace etc::kernels {
namespace {

class SmoothedLossRowsTest : public EachTargetTest {};

TEST_P(SmoothedLossRowsTest, MatchesTheDefinition) {
  constexpr int64_t kLossRows = 3;
  for (const int64_t columns : {1, 3, 4, 7, 8, 9, 15, 16, 17, 33, 8001}) {
    GuardedBuffer logits = Random(kLossRows * columns, 6.0f);
    const std::vector<double> before(logits.data(),
                                     logits.data() + kLossRows * columns);
    const std::vector<int64_t> targets = {0, columns - 1, columns / 2};
    std::vector<double> loss(kLossRows), nll(kLossRows);
    const SmoothedLossRows rows = {.columns = columns,
                                   .smoothing = 0.1,
                                   .targets = targets.data(),
                                   .logits = logits.data(),
                                   .loss = loss.data(),
                                   .nll = nll.data()};
    // In two parts: rows before `begin` stay.
    SmoothedLoss(rows, 1, kLossRows);
    for (int64_t c = 0; c < columns; ++c) {
      ASSERT_EQ(static_cast<double>(logits[static_cast<size_t>(c)]),
                before[static_cast<size_t>(c)]);
    }
    SmoothedLoss(rows, 0, 1);
    for (int64_t r = 0; r < kLossRows; ++r) {
      const double* const row = before.data() + r * columns;
      double sum = 0, mean = 0;
      for (int64_t c = 0; c < columns; ++c) {
        sum += std::exp(row[c]);
        mean += row[c] / static_cast<double>(columns);
      }
      const int64_t target = targets[static_cast<size_t>(r)];
      const double log_sum = std::log(sum);
      const auto i = static_cast<size_t>(r);
      EXPECT_NEAR(nll[i], log_sum - row[target], 5e-6) << columns;
      EXPECT_NEAR(loss[i],
                  0.9 * (log_sum - row[target]) + 0.1 * (log_sum - mean), 5e-6)
          << columns;
      for (int64_t c = 0; c < columns; ++c) {
        const double expected = std::exp(row[c] - log_sum) -
                                0.1 / static_cast<double>(columns) -
                                (c == target ? 0.9 : 0.0);
        ASSERT_NEAR(logits[static_cast<size_t>(r * columns + c)], expected,
                    3e-6)
            << columns << " columns, column " << c;
      }
    }
  }
}

ETC_INSTANTIATE_FOR_EACH_TARGET(SmoothedLossRowsTest);

}  // namespace
}  // namespace etc::kernels
