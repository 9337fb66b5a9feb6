// Batches of tokens against the goldens of doc/translation.md 11.1, an
// independent count of what a batch may hold, and the loader's promises: frozen
// members, another order in each epoch, the same batches from any position and
// shared among ranks. Whole numbers, so all comparisons are exact.

#include "tasks/translation/token_batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <set>
#include <typeinfo>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/random.h"

namespace etc {
namespace {

using testing::ElementsAre;

TEST(TokenBatchesTest, MatchesGoldensOfTranslationSpec111) {
  const std::vector<int64_t> tokens = {3, 3, 4, 4, 4, 5, 5,  5,  6,  6,
                                       7, 7, 7, 8, 9, 9, 10, 12, 12, 20};
  EXPECT_THAT(CutByTokens(tokens, {.max_tokens = 40}),
              ElementsAre(8, 5, 4, 2, 1));
  EXPECT_THAT(CutByTokens(tokens, {.max_tokens = 64}), ElementsAre(8, 7, 4, 1));
  const std::vector<int64_t> fours(20, 4);
  EXPECT_THAT(CutByTokens(fours, {.max_tokens = 40}), ElementsAre(8, 8, 4));
  EXPECT_THAT(CutByTokens(fours, {.max_tokens = 40, .multiple = 1}),
              ElementsAre(10, 10));
}

TEST(TokenBatchesTest, HoldsAtMostAsManySentences) {
  EXPECT_THAT(CutByTokens(std::vector<int64_t>(20, 4),
                          {.max_tokens = 1000, .max_sentences = 6}),
              ElementsAre(6, 6, 6, 2));
  EXPECT_THAT(CutByTokens({}, {}), ElementsAre());
}

// Pairs of random lengths of 2 to 30 tokens.
std::vector<PairLengths> RandomPairs(int64_t count) {
  std::vector<PairLengths> pairs;
  for (int64_t i = 0; i < count; ++i) {
    const auto draw = [i](uint64_t side) {
      return static_cast<int64_t>(
          2 + CombineSeeds({7, static_cast<uint64_t>(i), side}) % 29);
    };
    pairs.push_back({.source = draw(0), .target = draw(1)});
  }
  return pairs;
}

TEST(TokenBatchesTest, HasEachPairOnceByLength) {
  const std::vector<PairLengths> pairs = RandomPairs(500);
  const auto batches = MakeTokenBatches(pairs, {.max_tokens = 256}, 1);
  std::vector<int64_t> seen;
  int64_t source = 0;
  for (const std::vector<int64_t>& batch : batches) {
    int64_t longest = 0;
    for (const int64_t i : batch) {
      const PairLengths& pair = pairs[static_cast<size_t>(i)];
      EXPECT_GE(pair.source, source);
      source = pair.source;
      longest = std::max(longest, pair.longest());
      seen.push_back(i);
    }
    EXPECT_LE(longest * static_cast<int64_t>(batch.size()), 256);
  }
  std::sort(seen.begin(), seen.end());
  std::vector<int64_t> all(pairs.size());
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(seen, all);
  EXPECT_NE(MakeTokenBatches(pairs, {.max_tokens = 256}, 2), batches);
  EXPECT_EQ(MakeTokenBatches(pairs, {.max_tokens = 256}, 2).size(),
            batches.size());
}

// Pairs of such lengths, with their number as the first source token.
class PairsOfLengths final : public ExampleSource {
 public:
  explicit PairsOfLengths(std::vector<PairLengths> lengths)
      : lengths_(std::move(lengths)) {}
  int64_t size() const override {
    return static_cast<int64_t>(lengths_.size());
  }
  absl::StatusOr<Examples> Make(RecordRequest request) const override {
    const PairLengths& lengths = lengths_[static_cast<size_t>(request.record)];
    auto pair = std::make_shared<TranslationExample>();
    pair->source.assign(static_cast<size_t>(lengths.source), 5);
    pair->target.assign(static_cast<size_t>(lengths.target), 6);
    pair->source.front() = static_cast<int32_t>(request.record);
    return Examples{std::move(pair)};
  }

 private:
  const std::vector<PairLengths> lengths_;
};

// A source of one record that cannot be read, or is no pair.
class NoPair final : public ExampleSource {
 public:
  explicit NoPair(absl::StatusOr<Examples> made) : made_(std::move(made)) {}
  int64_t size() const override { return 1; }
  absl::StatusOr<Examples> Make(RecordRequest /*request*/) const override {
    return made_;
  }

 private:
  const absl::StatusOr<Examples> made_;
};

TEST(TokenBatchesTest, TakeLengthsOfPairsAlone) {
  EXPECT_EQ(LengthsOf(NoPair(absl::DataLossError("disk on fire"))).status(),
            absl::DataLossError("disk on fire"));
  const NoPair other(Examples{std::make_shared<Example>()});
  EXPECT_THROW(static_cast<void>(LengthsOf(other)), std::bad_cast);
}

// The numbers of the pairs by micro-batch.
std::vector<std::vector<int32_t>> Numbers(const TrainingBatch& batch) {
  std::vector<std::vector<int32_t>> numbers;
  for (const Examples& examples : batch.micro_batches) {
    std::vector<int32_t>& of_batch = numbers.emplace_back();
    for (const auto& example : examples) {
      of_batch.push_back(
          static_cast<const TranslationExample&>(*example).source.front());
    }
  }
  return numbers;
}

class TokenBatchLoaderTest : public testing::Test {
 protected:
  TokenBatchLoader Loader(TrainingLoaderOptions options,
                          LoaderPosition start = {}) {
    options.seed = 3;
    return TokenBatchLoader(&source_, {.max_tokens = 256}, options, start);
  }
  static TrainingBatch Next(TokenBatchLoader* loader) {
    absl::StatusOr<TrainingBatch> batch = loader->Next();
    EXPECT_TRUE(batch.ok()) << batch.status();
    return *std::move(batch);
  }

  const PairsOfLengths source_{RandomPairs(200)};
};

TEST_F(TokenBatchLoaderTest, HasTheSameBatchesInAnotherOrderEachEpoch) {
  TokenBatchLoader loader = Loader({.batch_size = 1});
  std::vector<std::vector<std::vector<int32_t>>> epochs(2);
  for (int64_t epoch = 0; epoch < 2;) {
    const TrainingBatch batch = Next(&loader);
    EXPECT_EQ(batch.epoch, epoch);
    epochs[static_cast<size_t>(epoch)].push_back(Numbers(batch).front());
    epoch = batch.next.epoch;
  }
  EXPECT_NE(epochs[0], epochs[1]);
  for (auto& epoch : epochs) {
    std::sort(epoch.begin(), epoch.end());
  }
  EXPECT_EQ(epochs[0], epochs[1]);
}

TEST_F(TokenBatchLoaderTest, MakesASmallerUpdateOfTheRestAndGoesOnAnywhere) {
  TokenBatchLoader loader = Loader({.batch_size = 4});
  const size_t batches =
      MakeTokenBatches(RandomPairs(200), {.max_tokens = 256}, 3).size();
  ASSERT_NE(batches % 4, 0u);
  size_t seen = 0;
  for (int update = 0; update < 20; ++update) {
    const TrainingBatch batch = Next(&loader);
    seen += batch.micro_batches.size();
    if (batch.next.epoch > batch.epoch) {
      EXPECT_EQ(batch.micro_batches.size(), batches % 4);
      EXPECT_EQ(seen, batches);
      seen = 0;
    } else {
      EXPECT_EQ(batch.micro_batches.size(), 4u);
    }
    TokenBatchLoader later = Loader({.batch_size = 4}, batch.next);
    TokenBatchLoader same = loader;
    EXPECT_EQ(Numbers(Next(&later)), Numbers(Next(&same)));
  }
}

TEST_F(TokenBatchLoaderTest, DealsMicroBatchesToRanks) {
  TokenBatchLoader alone = Loader({.batch_size = 4});
  std::vector<TokenBatchLoader> ranks;
  for (const int64_t rank : {0, 1}) {
    ranks.push_back(
        Loader({.batch_size = 4, .group = {.rank = rank, .size = 2}}));
  }
  for (int update = 0; update < 10; ++update) {
    const auto all = Numbers(Next(&alone));
    const auto first = Numbers(Next(&ranks[0]));
    const auto second = Numbers(Next(&ranks[1]));
    ASSERT_EQ(first.size(), all.size());
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(i % 2 == 0 ? first[i] : second[i], all[i]);
      EXPECT_TRUE((i % 2 == 0 ? second[i] : first[i]).empty());
    }
  }
}

TEST_F(TokenBatchLoaderTest, RefusesAPositionThatTheDataDoNotHave) {
  for (const int64_t batch : {int64_t{-1}, int64_t{100000}, int64_t{1} << 62}) {
    TokenBatchLoader loader = Loader({.batch_size = 4}, {.batch = batch});
    EXPECT_EQ(loader.Next().status().code(),
              absl::StatusCode::kFailedPrecondition);
  }
  const PairsOfLengths none({});
  TokenBatchLoader empty(&none, {}, {}, {});
  EXPECT_EQ(empty.Next().status().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace etc
