// Seeds of dropout: recorded and replayed on the thread that asks, whatever
// LibTorch's generator gives others meanwhile; and dropout from them, by share
// of what is dropped (5 standard deviations of a binomial) and exactly by
// value.

#include "base/dropout_seeds.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>

#include <thread>
#include <vector>

namespace etc {
namespace {

std::vector<uint64_t> Draw(int count) {
  std::vector<uint64_t> seeds;
  for (int i = 0; i < count; ++i) {
    seeds.push_back(DrawDropoutSeed());
  }
  return seeds;
}

TEST(DropoutSeedsTest, AreRecordedAndReplayedInOrder) {
  torch::manual_seed(1);
  std::vector<uint64_t> recorded;
  std::vector<uint64_t> drawn;
  {
    const RecordDropoutSeeds record(&recorded);
    drawn = Draw(3);
  }
  EXPECT_EQ(recorded, drawn);
  Draw(2);
  EXPECT_EQ(recorded.size(), 3);
  torch::manual_seed(2);
  const torch::Tensor next = torch::rand({3});
  torch::manual_seed(2);
  const ReplayDropoutSeeds replay(recorded);
  EXPECT_EQ(Draw(3), recorded);
  EXPECT_TRUE(torch::rand({3}).equal(next));
  EXPECT_THROW(DrawDropoutSeed(), c10::Error);
}

TEST(DropoutSeedsTest, AreRecordedWithinAnotherRecordOrReplay) {
  torch::manual_seed(1);
  std::vector<uint64_t> outer;
  std::vector<uint64_t> inner;
  {
    const RecordDropoutSeeds record(&outer);
    Draw(1);
    const RecordDropoutSeeds record_inner(&inner);
    Draw(2);
  }
  ASSERT_EQ(outer.size(), 3);
  EXPECT_EQ(inner, std::vector<uint64_t>(outer.begin() + 1, outer.end()));
  std::vector<uint64_t> again;
  const ReplayDropoutSeeds replay(outer);
  {
    const RecordDropoutSeeds record(&again);
    Draw(3);
  }
  EXPECT_EQ(again, outer);
}

TEST(DropoutSeedsTest, OfOtherThreadsAreTheirOwn) {
  std::vector<uint64_t> recorded;
  const RecordDropoutSeeds record(&recorded);
  std::thread([] { Draw(5); }).join();
  EXPECT_TRUE(recorded.empty());
}

TEST(SeededDropoutTest, DropsItsShareAndScalesTheRest) {
  torch::manual_seed(1);
  for (const auto type : {torch::kFloat64, torch::kFloat32, torch::kBFloat16}) {
    const torch::Tensor x = torch::ones({100, 1000}, type).requires_grad_(true);
    const torch::Tensor y = SeededDropout(x, 0.2);
    EXPECT_EQ(y.scalar_type(), type);
    const torch::Tensor dropped = y.eq(0);
    EXPECT_NEAR(dropped.to(torch::kFloat64).mean().item<double>(), 0.2,
                5 * 0.0013);
    EXPECT_TRUE(y.eq(1.25).logical_or(dropped).all().item<bool>());
    y.sum().backward();
    EXPECT_TRUE(x.grad().equal(y));
  }
}

TEST(SeededDropoutTest, FollowsFromTheSeedAlone) {
  torch::manual_seed(1);
  const torch::Tensor x = torch::rand({40, 30});
  std::vector<uint64_t> seeds;
  torch::Tensor first, second;
  {
    const RecordDropoutSeeds record(&seeds);
    first = SeededDropout(x, 0.5);
    second = SeededDropout(x, 0.5);
  }
  EXPECT_EQ(seeds.size(), 2);
  EXPECT_FALSE(first.equal(second));
  torch::rand({7});
  const ReplayDropoutSeeds replay(seeds);
  EXPECT_TRUE(SeededDropout(x, 0.5).equal(first));
  EXPECT_TRUE(SeededDropout(x, 0.5).equal(second));
}

TEST(SeededDropoutTest, DrawsNothingWithoutDropout) {
  std::vector<uint64_t> seeds;
  const RecordDropoutSeeds record(&seeds);
  const torch::Tensor x = torch::rand({3});
  EXPECT_TRUE(SeededDropout(x, 0.0).equal(x));
  EXPECT_TRUE(seeds.empty());
  EXPECT_THROW(SeededDropout(x, 1.0), c10::Error);
}

TEST(SeededDropoutTest, IsDifferentiableTwice) {
  torch::manual_seed(1);
  const torch::Tensor x =
      torch::rand({9}, torch::kFloat64).requires_grad_(true);
  const torch::Tensor y = SeededDropout(x, 0.5).pow(3).sum();
  const torch::Tensor once =
      torch::autograd::grad({y}, {x}, {}, true, /*create_graph=*/true)[0];
  const torch::Tensor twice = torch::autograd::grad({once.sum()}, {x})[0];
  EXPECT_TRUE(torch::allclose(
      twice, 48.0 * x.detach() * once.detach().gt(0).to(torch::kFloat64)));
}

}  // namespace
}  // namespace etc
