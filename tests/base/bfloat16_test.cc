// Rounding to bfloat16, on every SIMD target this CPU has, between pages that
// may not be touched: exactly the nearest of the two neighbours, the even one
// in the middle, found here by their difference in double. Counts straddle 4, 8
// and 16 lanes.

#include "base/bfloat16.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/support/each_target.h"

namespace etc::kernels {
namespace {

class Bfloat16Test : public EachTargetTest {
 protected:
  // They end where the buffer ends.
  std::vector<uint16_t> Round(GuardedBuffer* values) {
    const int64_t count = static_cast<int64_t>(values->size());
    GuardedBuffer halves = Zeros((count + 1) / 2);
    auto* const to =
        static_cast<uint16_t*>(static_cast<void*>(halves.data())) + count % 2;
    RoundToBfloat16(count, values->data(), to);
    return std::vector<uint16_t>(to, to + count);
  }
};

double ValueOf(uint16_t bits) {
  return static_cast<double>(
      std::bit_cast<float>(static_cast<uint32_t>(bits) << 16));
}

TEST_P(Bfloat16Test, RoundsToTheNearest) {
  for (const int64_t count : {0, 1, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 1000}) {
    GuardedBuffer values = Random(count, 100.0f);
    const std::vector<uint16_t> rounded = Round(&values);
    for (int64_t i = 0; i < count; ++i) {
      const double value = static_cast<double>(values[i]);
      const uint16_t bits = rounded[i];
      const double error = std::abs(ValueOf(bits) - value);
      ASSERT_LE(error, std::abs(ValueOf(bits - 1) - value));
      ASSERT_LE(error, std::abs(ValueOf(bits + 1) - value));
    }
  }
}

TEST_P(Bfloat16Test, AddsTheRowsThatItRounds) {
  constexpr int64_t kRows = 5;
  for (const int64_t columns : {1, 3, 8, 15, 16, 17, 33}) {
    const int64_t stride = columns + 2;
    // The last row ends where the buffer ends.
    GuardedBuffer values = Random(kRows * stride - 2, 100.0f);
    GuardedBuffer sums = Zeros(columns);
    std::vector<uint16_t> rounded(static_cast<size_t>(kRows * columns));
    std::vector<uint16_t> expected(rounded.size());
    for (int64_t c = 0; c < columns; ++c) {
      sums[c] = 1.0f;
    }
    RoundAndAddRows({.rows = kRows,
                     .columns = columns,
                     .from = values.data(),
                     .from_stride = stride,
                     .to = rounded.data(),
                     .to_stride = columns,
                     .sums = sums.data()});
    for (int64_t r = 0; r < kRows; ++r) {
      RoundToBfloat16(columns, values.data() + r * stride,
                      expected.data() + r * columns);
    }
    EXPECT_EQ(rounded, expected);
    for (int64_t c = 0; c < columns; ++c) {
      float sum = 1.0f;
      for (int64_t r = 0; r < kRows; ++r) {
        sum += values[r * stride + c];
      }
      ASSERT_EQ(sums[c], sum);
    }
  }
}

TEST_P(Bfloat16Test, TakesTheEvenOneInTheMiddleAndKeepsWhatIsNoNumber) {
  GuardedBuffer values = Zeros(7);
  values[0] = std::bit_cast<float>(0x3f808000u);  // between 3f80 and 3f81
  values[1] = std::bit_cast<float>(0x3f818000u);  // between 3f81 and 3f82
  values[2] = -0.0f;
  values[3] = std::numeric_limits<float>::infinity();
  values[4] = -std::numeric_limits<float>::infinity();
  values[5] = std::numeric_limits<float>::max();  // nearest is infinity
  values[6] = std::bit_cast<float>(0x7f800001u);  // NaN in its last bit alone
  const std::vector<uint16_t> rounded = Round(&values);
  EXPECT_EQ(rounded[0], 0x3f80);
  EXPECT_EQ(rounded[1], 0x3f82);
  EXPECT_EQ(rounded[2], 0x8000);
  EXPECT_EQ(rounded[3], 0x7f80);
  EXPECT_EQ(rounded[4], 0xff80);
  EXPECT_EQ(rounded[5], 0x7f80);
  EXPECT_TRUE(std::isnan(ValueOf(rounded[6])));
}

ETC_INSTANTIATE_FOR_EACH_TARGET(Bfloat16Test);

}  // namespace
}  // namespace etc::kernels
