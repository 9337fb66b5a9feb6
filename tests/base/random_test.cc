// Numbers from counters: they stay what they are (a resumed run on another
// machine depends on it), and no two of many nearby counters collide.

#include "base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>

namespace etc {
namespace {

// The first numbers of SplitMix64 from state 0, as in its reference code
// (https://prng.di.unimi.it/splitmix64.c): its state moves by the constant that
// Mix64 adds.
TEST(RandomTest, DrawsTheNumbersOfSplitMix64) {
  constexpr uint64_t kIncrement = 0x9e3779b97f4a7c15u;
  EXPECT_EQ(Mix64(0), 0xe220a8397b1dcdafu);
  EXPECT_EQ(Mix64(kIncrement), 0x6e789e6aa1b965f4u);
  EXPECT_EQ(Mix64(2 * kIncrement), 0x06c45d188009454fu);
  EXPECT_EQ(FinalizeBits(0), 0u);
}

// A change here changes every earlier run that is resumed.
TEST(CombineSeedsTest, StaysAsItIs) {
  static_assert(CombineSeeds({}) == 0);
  EXPECT_EQ(CombineSeeds({1, 2}), 8314919509031096729u);
}

TEST(CombineSeedsTest, DependsOnEachPartAndOnTheirOrder) {
  std::set<uint64_t> seeds = {CombineSeeds({}), CombineSeeds({0}),
                              CombineSeeds({0, 0})};
  for (uint64_t first = 0; first < 100; ++first) {
    for (uint64_t second = 1; second < 100; ++second) {
      seeds.insert(CombineSeeds({first, second}));
    }
  }
  EXPECT_EQ(seeds.size(), 3 + 100 * 99);
}

// 10000 draws in ten equal parts: 5 standard deviations of a count are 150.
TEST(UnitIntervalTest, IsUniformBelowOne) {
  EXPECT_EQ(UnitInterval(0), 0.0);
  EXPECT_LT(UnitInterval(~uint64_t{0}), 1.0);
  EXPECT_EQ(UnitInterval(uint64_t{1} << 63), 0.5);
  std::array<int, 10> counts = {};
  for (uint64_t i = 0; i < 10000; ++i) {
    ++counts[static_cast<size_t>(10 * UnitInterval(CombineSeeds({7, i})))];
  }
  for (const int count : counts) {
    EXPECT_NEAR(count, 1000, 150);
  }
}

}  // namespace
}  // namespace etc
