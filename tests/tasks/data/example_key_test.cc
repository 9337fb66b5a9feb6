// Examples that differ from epoch to epoch, as with dynamic masking: a source
// that masks tokens by the key of the request, through the cache and both
// loaders. Which tokens are masked follows from seed, epoch and record alone:
// not from workers, nor from where a loader starts; each epoch and each seed
// masks others; every evaluation masks the same.

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/data/evaluation_loader.h"
#include "tasks/data/example_source.h"
#include "tasks/data/loader.h"

namespace etc {
namespace {

constexpr int32_t kMask = -1;

// Record i is one example, called "i", of 40 tokens i, of which about 15 % are
// masked; those of record 0 never are (a record that draws nothing).
class MaskingSource : public ExampleSource {
 public:
  explicit MaskingSource(int64_t size) : size_(size) {}

  int64_t size() const override { return size_; }
  bool depends_on_key() const override { return true; }
  absl::StatusOr<Examples> Make(RecordRequest request) const override {
    auto example = std::make_shared<Example>();
    example->record_id = absl::StrCat(request.record);
    example->long_token_ids.assign(40, static_cast<int32_t>(request.record));
    for (uint64_t i = 0; i < 40 && request.record > 0; ++i) {
      if (UnitInterval(CombineSeeds({request.key, i})) < 0.15) {
        example->long_token_ids[i] = kMask;
      }
    }
    return Examples{std::move(example)};
  }

 private:
  const int64_t size_;
};

// The tokens of each example of a batch, in its order.
using Tokens = std::vector<std::vector<int32_t>>;

Tokens TokensOf(const TrainingBatch& batch) {
  Tokens tokens;
  for (const Examples& examples : batch.micro_batches) {
    for (const auto& example : examples) {
      tokens.push_back(example->long_token_ids);
    }
  }
  return tokens;
}

constexpr int64_t kRecords = 24;
// Six batches an epoch, in two pools.
const TrainingLoaderOptions kOptions{
    .seed = 3, .batch_size = 4, .micro_batch_size = 2, .bucket_batches = 3};
constexpr size_t kBatchesPerEpoch = 6;

std::vector<Tokens> Take(TrainingLoader& loader, size_t count) {
  std::vector<Tokens> batches;
  for (size_t i = 0; i < count; ++i) {
    const auto batch = loader.Next();
    EXPECT_TRUE(batch.ok()) << batch.status();
    batches.push_back(TokensOf(*batch));
  }
  return batches;
}

// The tokens of each record in one epoch.
std::map<std::string, std::vector<int32_t>> TakeEpoch(TrainingLoader& loader) {
  std::map<std::string, std::vector<int32_t>> records;
  for (size_t i = 0; i < kBatchesPerEpoch; ++i) {
    const auto batch = loader.Next();
    EXPECT_TRUE(batch.ok()) << batch.status();
    for (const Examples& examples : batch->micro_batches) {
      for (const auto& example : examples) {
        records[example->record_id] = example->long_token_ids;
      }
    }
  }
  EXPECT_EQ(records.size(), kRecords);
  return records;
}

int64_t CountDifferent(
    const std::map<std::string, std::vector<int32_t>>& left,
    const std::map<std::string, std::vector<int32_t>>& right) {
  int64_t count = 0;
  for (const auto& [record, tokens] : left) {
    count += tokens == right.at(record) ? 0 : 1;
  }
  return count;
}

TEST(ExampleKeyTest, MasksTheSameForAnyWorkersMicroBatchesAndMemory) {
  const MaskingSource source(kRecords);
  TrainingLoader expected(&source, kOptions);
  const auto batches = Take(expected, 3 * kBatchesPerEpoch);
  for (const int64_t workers : {0, 1, 2, 5}) {
    for (const int64_t bytes : {int64_t{0}, int64_t{1} << 20}) {
      TrainingLoaderOptions options = kOptions;
      options.workers = workers;
      options.micro_batch_size = workers + 1;
      options.max_prefetch_bytes = bytes;
      TrainingLoader loader(&source, options);
      EXPECT_EQ(Take(loader, 3 * kBatchesPerEpoch), batches)
          << workers << " workers, " << bytes << " bytes";
    }
  }
}

TEST(ExampleKeyTest, MasksOthersInEachEpochAndForEachSeed) {
  const MaskingSource source(kRecords);
  TrainingLoader loader(&source, kOptions);
  const auto first = TakeEpoch(loader);
  // Two masks of 40 tokens agree by chance with probability 1e-5.
  EXPECT_EQ(CountDifferent(first, TakeEpoch(loader)), kRecords - 1);
  TrainingLoaderOptions options = kOptions;
  options.seed = 4;
  TrainingLoader other_seed(&source, options);
  EXPECT_EQ(CountDifferent(first, TakeEpoch(other_seed)), kRecords - 1);
}

TEST(ExampleKeyTest, GoesOnAtAnyBatchWithTheSameMasks) {
  const MaskingSource source(kRecords);
  TrainingLoader all(&source, kOptions);
  const auto expected = Take(all, 4 * kBatchesPerEpoch);
  TrainingLoader straight(&source, kOptions);
  LoaderPosition position;
  for (size_t begin = 0; begin < 2 * kBatchesPerEpoch; ++begin) {
    TrainingLoader resumed(&source, kOptions, position);
    const auto batches = Take(resumed, kBatchesPerEpoch + 2);
    EXPECT_TRUE(std::equal(batches.begin(), batches.end(),
                           expected.begin() + static_cast<int64_t>(begin)))
        << "at batch " << begin;
    position = straight.Next()->next;
  }
}

TEST(ExampleKeyTest, PassesTheCacheAndIsNeverKept) {
  const MaskingSource source(kRecords);
  const CachedSource cached(&source, 1 << 30);
  EXPECT_TRUE(cached.depends_on_key());
  TrainingLoader expected(&source, kOptions);
  TrainingLoader loader(&cached, kOptions);
  EXPECT_EQ(Take(loader, 3 * kBatchesPerEpoch),
            Take(expected, 3 * kBatchesPerEpoch));
}

TEST(ExampleKeyTest, MasksTheSameInEveryEvaluation) {
  const MaskingSource source(kRecords);
  const auto evaluate = [&](int64_t workers) {
    EvaluationLoader loader(&source, {.batch_size = 5, .workers = workers});
    Tokens tokens;
    for (auto round = loader.Next(); !round->batches.empty();
         round = loader.Next()) {
      for (const auto& example : round->batches.front()) {
        tokens.push_back(example->long_token_ids);
      }
    }
    return tokens;
  };
  const Tokens tokens = evaluate(0);
  ASSERT_EQ(tokens.size(), kRecords);
  EXPECT_THAT(tokens[1], testing::Contains(kMask));
  EXPECT_EQ(evaluate(3), tokens);
}

TEST(RequestInEpochTest, GivesEachRecordOfEachEpochAKeyOfItsOwn) {
  std::set<uint64_t> keys;
  for (int64_t epoch = 0; epoch < 30; ++epoch) {
    for (int64_t record = 0; record < 30; ++record) {
      const RecordRequest request = RequestInEpoch(1, epoch, record);
      EXPECT_EQ(request.record, record);
      keys.insert(request.key);
    }
  }
  EXPECT_EQ(keys.size(), 900);
  EXPECT_EQ(RequestInEpoch(1, 2, 3), RequestInEpoch(1, 2, 3));
}

// A change here changes every earlier run that is resumed.
TEST(RequestInEpochTest, StaysAsItIs) {
  EXPECT_EQ(RequestInEpoch(1, 2, 3).key, CombineSeeds({1, 2, 3}));
}

}  // namespace
}  // namespace etc
