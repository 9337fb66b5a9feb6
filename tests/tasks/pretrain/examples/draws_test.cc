// The stateless generator has the numbers of doc/pretraining.md 12.6, and is
// uniform.

#include "tasks/pretrain/examples/draws.h"

#include <limits>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace etc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(KeyedDrawsTest, HasTheNumbersOfTheSpecification) {
  KeyedDraws bits({42, 0, 7, 1});
  EXPECT_EQ(bits.Bits(), 0x8887e03bc296f553u);
  EXPECT_EQ(bits.Bits(), 0xd63f9db37f221287u);
  EXPECT_EQ(bits.Bits(), 0xecdd24ffa3df528eu);
  EXPECT_EQ(bits.Bits(), 0x4f8cfcad27c7dd97u);

  KeyedDraws uniform({42, 0, 7, 1});
  for (const double expected :
       {0.53332330, 0.83690820, 0.92524940, 0.31074505}) {
    EXPECT_NEAR(uniform.Uniform(), expected, 1e-8);  // as printed there
  }

  KeyedDraws below({42, 0, 7, 1});
  for (const int64_t expected : {5, 8, 9, 3}) {
    EXPECT_EQ(below.Below(10), expected);
  }
  EXPECT_THAT(KeyedDraws({42, 0, 7, 1}).Permutation(8),
              ElementsAre(2, 7, 3, 0, 1, 6, 5, 4));

  KeyedDraws other({42, 1, 7, 1});
  for (const int64_t expected : {6, 4, 4, 8, 5, 5, 3, 5}) {
    EXPECT_EQ(other.Below(10), expected);
  }
  EXPECT_THAT(KeyedDraws({42, 1, 7, 1}).Permutation(8),
              ElementsAre(3, 0, 1, 7, 4, 6, 2, 5));
}

// SplitMix64 itself, from state 0: the key of no numbers.
TEST(KeyedDrawsTest, OfAnEmptyKeyIsSplitMix64) {
  KeyedDraws draws({});
  EXPECT_EQ(draws.Bits(), 0xe220a8397b1dcdafu);
  EXPECT_EQ(draws.Bits(), 0x6e789e6aa1b965f4u);
  EXPECT_EQ(draws.Bits(), 0x06c45d188009454fu);
}

TEST(KeyedDrawsTest, IntegersReachBothEndsAndNoFurther) {
  KeyedDraws draws({1});
  std::set<int64_t> seen;
  for (int i = 0; i < 200; ++i) {
    seen.insert(draws.Integer(-2, 3));
  }
  EXPECT_THAT(seen, ElementsAre(-2, -1, 0, 1, 2, 3));
  EXPECT_EQ(draws.Integer(7, 7), 7);
  EXPECT_ANY_THROW(draws.Integer(7, 6));
}

// 10,000 draws of 16 numbers, 625 each expected with a standard deviation
// of 24.
TEST(KeyedDrawsTest, IntegersAreAboutEquallyFrequent) {
  KeyedDraws draws({2});
  std::vector<int> counts(16, 0);
  for (int i = 0; i < 10000; ++i) {
    ++counts[static_cast<size_t>(draws.Below(16))];
  }
  for (const int count : counts) {
    EXPECT_NEAR(count, 625, 120);
  }
}

TEST(KeyedDrawsTest, PermutesNothingAndOne) {
  KeyedDraws draws({3});
  EXPECT_THAT(draws.Permutation(0), IsEmpty());
  EXPECT_THAT(draws.Permutation(1), ElementsAre(0));
}

}  // namespace
}  // namespace etc
