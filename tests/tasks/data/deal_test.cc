#include "tasks/data/deal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace etc {
namespace {

// Micro-batches of one example of so many long and no global tokens, whose
// records process 0 makes, whatever the processes.
std::vector<ExampleOutlines> MicroBatches(const std::vector<int64_t>& lengths) {
  std::vector<ExampleOutlines> micro_batches;
  for (const int64_t length : lengths) {
    micro_batches.push_back({{.long_length = length}});
  }
  return micro_batches;
}

// Returns for each rank the sum of its costs; each micro-batch is dealt once.
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
  std::vector<ExampleOutlines> micro_batches = MicroBatches({40, 79, 40});
  // Two rows of 40, of which one is padded.
  micro_batches[0].push_back({.long_length = 1});
  EXPECT_EQ(DealMicroBatches(micro_batches, 2, 0),
            std::vector<bool>({true, false, false}));
  micro_batches.push_back({{.global_length = 21}});  // 84
  EXPECT_EQ(DealMicroBatches(micro_batches, 2, 0),
            std::vector<bool>({false, false, true, true}));
}

TEST(DealMicroBatchesTest, GivesAProcessWhatItHasMade) {
  // Records 0 to 7, in another order: even ones are made by process 0.
  std::vector<ExampleOutlines> micro_batches;
  for (const int64_t record : {4, 6, 1, 0, 3, 5, 2, 7}) {
    micro_batches.push_back(
        {{.request = {.record = record}, .long_length = 10}});
  }
  EXPECT_EQ(
      DealMicroBatches(micro_batches, 2, 0),
      std::vector<bool>({true, true, false, true, false, false, true, false}));
  // Micro-batches that a rank has made beyond its share go to the other.
  micro_batches[2].front().request.record = 8;
  micro_batches[4].front().request.record = 10;
  std::vector<bool> first = DealMicroBatches(micro_batches, 2, 0);
  std::vector<bool> second = DealMicroBatches(micro_batches, 2, 1);
  EXPECT_EQ(std::count(first.begin(), first.end(), true), 4);
  EXPECT_TRUE(second[5] && second[7]);
  second.flip();
  EXPECT_EQ(first, second);
}

}  // namespace
}  // namespace etc
