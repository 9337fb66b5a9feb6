#include "tasks/distributed/deal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace etc {
namespace {

// Micro-batches of one example of so many long and no global tokens.
std::vector<Examples> MicroBatches(const std::vector<int64_t>& lengths) {
  std::vector<Examples> micro_batches;
  for (const int64_t length : lengths) {
    auto example = std::make_shared<Example>();
    example->long_token_ids.resize(static_cast<size_t>(length));
    micro_batches.push_back({example});
  }
  return micro_batches;
}

// Of each process the sum of what it computes; each micro-batch is dealt once.
std::vector<int64_t> Loads(const std::vector<int64_t>& lengths,
                           int64_t processes) {
  std::vector<int64_t> loads;
  std::vector<int> dealt(lengths.size());
  for (int64_t rank = 0; rank < processes; ++rank) {
    const std::vector<bool> is_here =
        DealMicroBatches(MicroBatches(lengths), processes, rank);
    loads.push_back(0);
    for (size_t i = 0; i < lengths.size(); ++i) {
      loads.back() += is_here[i] ? lengths[i] : 0;
      dealt[i] += is_here[i] ? 1 : 0;
    }
  }
  EXPECT_EQ(dealt, std::vector<int>(lengths.size(), 1));
  return loads;
}

TEST(DealMicroBatchesTest, GivesAllAboutTheSame) {
  EXPECT_EQ(Loads({5, 6, 7}, 1), std::vector<int64_t>({18}));
  EXPECT_EQ(Loads({1, 2, 3, 4, 5, 6, 7, 8}, 2), std::vector<int64_t>({18, 18}));
  EXPECT_EQ(Loads({10, 10, 10, 30}, 2), std::vector<int64_t>({30, 30}));
}

TEST(DealMicroBatchesTest, LeavesNobodyWithoutWork) {
  for (const int64_t load : Loads({100, 1, 1, 1}, 4)) {
    EXPECT_GE(load, 1);
  }
  for (int64_t rank = 0; rank < 3; ++rank) {
    const std::vector<bool> is_here =
        DealMicroBatches(MicroBatches({0, 0, 0}), 3, rank);
    EXPECT_EQ(std::count(is_here.begin(), is_here.end(), true), 1);
  }
}

TEST(DealMicroBatchesTest, CountsPaddingAndGlobalTokens) {
  std::vector<Examples> micro_batches = MicroBatches({40, 79, 40});
  // Two rows of 40, of which one is padded.
  micro_batches[0].push_back(MicroBatches({1}).front().front());
  EXPECT_EQ(DealMicroBatches(micro_batches, 2, 0),
            std::vector<bool>({true, false, false}));
  auto example = std::make_shared<Example>();
  example->global_token_ids.resize(21);  // 84
  micro_batches.push_back({example});
  EXPECT_EQ(DealMicroBatches(micro_batches, 2, 0),
            std::vector<bool>({false, false, true, true}));
}

}  // namespace
}  // namespace etc
