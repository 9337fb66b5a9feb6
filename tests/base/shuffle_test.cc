// Random orders: permutations, all of them about equally often, and the same
// ones for ever (a resumed run on another machine depends on it).

#include "base/shuffle.h"

#include <algorithm>
#include <map>

#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace etc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(RandomOrderTest, HoldsEachIndexOnce) {
  for (const int64_t size : {1, 2, 17, 1000}) {
    std::vector<int64_t> order = RandomOrder(size, 5);
    std::sort(order.begin(), order.end());
    for (int64_t i = 0; i < size; ++i) {
      EXPECT_EQ(order[static_cast<size_t>(i)], i);
    }
  }
  EXPECT_THAT(RandomOrder(0, 5), IsEmpty());
}

// 24 orders of 4, 1000 draws of each expected: 5 standard deviations are 155.
TEST(RandomOrderTest, DrawsEachOrderAboutEquallyOften) {
  std::map<std::vector<int64_t>, int> counts;
  for (uint64_t seed = 0; seed < 24000; ++seed) {
    ++counts[RandomOrder(4, CombineSeeds({seed}))];
  }
  EXPECT_EQ(counts.size(), 24);
  for (const auto& [order, count] : counts) {
    EXPECT_NEAR(count, 1000, 155);
  }
}

// A change here changes every earlier run that is resumed.
TEST(RandomOrderTest, StaysAsItIs) {
  EXPECT_THAT(RandomOrder(10, CombineSeeds({1, 2})),
              ElementsAre(3, 8, 1, 4, 6, 7, 2, 9, 0, 5));
}

}  // namespace
}  // namespace etc
