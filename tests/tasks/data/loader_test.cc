// The order of training: a function of seed and position alone, whatever the
// workers and micro-batches; every record once an epoch; restart at any batch;
// batches of about the same length. And the order of evaluation. Lengths repeat
// and records have 0 to 2 examples, so that ties and borders within records
// occur.

#include "tasks/data/loader.h"

#include <atomic>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/data/evaluation_loader.h"
#include "tests/tasks/data/fake_source.h"

namespace etc {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

std::vector<std::string> Ids(const TrainingBatch& batch) {
  std::vector<std::string> ids;
  for (const Examples& examples : batch.micro_batches) {
    for (const auto& example : examples) {
      ids.push_back(example->record_id);
    }
  }
  return ids;
}

// The next `count` batches, each as ids.
std::vector<std::vector<std::string>> Take(TrainingLoader& loader, int count) {
  std::vector<std::vector<std::string>> batches;
  for (int i = 0; i < count; ++i) {
    auto batch = loader.Next();
    EXPECT_TRUE(batch.ok()) << batch.status();
    batches.push_back(Ids(*batch));
  }
  return batches;
}

const TrainingLoaderOptions kOptions{
    .seed = 3, .batch_size = 4, .micro_batch_size = 2, .bucket_batches = 3};

TEST(TrainingLoaderTest, GivesTheSameOrderForAnyWorkersAndMicroBatches) {
  const FakeSource source(41, {1, 2, 0, 1});
  TrainingLoader expected(&source, kOptions);
  const auto batches = Take(expected, 60);
  for (const int64_t workers : {0, 1, 2, 5}) {
    for (const int64_t micro_batch_size : {1, 3, 4, 9}) {
      TrainingLoaderOptions options = kOptions;
      options.workers = workers;
      options.micro_batch_size = micro_batch_size;
      TrainingLoader loader(&source, options);
      EXPECT_EQ(Take(loader, 60), batches)
          << workers << " workers, micro-batches of " << micro_batch_size;
    }
  }
}

TEST(TrainingLoaderTest, GivesAnotherOrderForAnotherSeedAndEpoch) {
  const FakeSource source(40, {1});
  TrainingLoader loader(&source, kOptions);
  const auto first = Take(loader, 10);
  const auto second = Take(loader, 10);
  EXPECT_NE(first, second);
  TrainingLoaderOptions options = kOptions;
  options.seed = 4;
  TrainingLoader other(&source, options);
  EXPECT_NE(Take(other, 10), first);
}

TEST(TrainingLoaderTest, GivesEachExampleOnceAnEpochButForTheLastBatch) {
  // 41 records with 42 examples: 10 batches, two examples left out.
  const FakeSource source(41, {1, 2, 0, 1});
  TrainingLoader loader(&source, kOptions);
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    std::set<std::string> seen;
    for (int i = 0; i < 10; ++i) {
      const auto batch = loader.Next();
      ASSERT_TRUE(batch.ok());
      EXPECT_EQ(batch->epoch, epoch);
      for (const std::string& id : Ids(*batch)) {
        EXPECT_TRUE(seen.insert(id).second) << id;
      }
    }
    EXPECT_THAT(seen, SizeIs(40));
  }
}

TEST(TrainingLoaderTest, LeavesOutNoExampleForItsLength) {
  // Each epoch leaves out one of five examples of lengths 0, 7, 4, 1, 8.
  const FakeSource source(5, {1});
  TrainingLoader loader(&source, kOptions);
  std::map<std::string, int> times;
  for (const auto& batch : Take(loader, 50)) {
    for (const std::string& id : batch) {
      ++times[id];
    }
  }
  EXPECT_THAT(times, SizeIs(5));
  for (const auto& [id, count] : times) {
    EXPECT_LT(count, 50) << id << " was never left out";
  }
}

TEST(TrainingLoaderTest, GoesOnAtAnyBatchAsIfItHadNotStopped) {
  const FakeSource source(41, {1, 2, 0, 1});
  for (const int64_t bucket_batches : {1, 3, 100}) {
    TrainingLoaderOptions options = kOptions;
    options.bucket_batches = bucket_batches;
    TrainingLoader all(&source, options);
    const auto expected = Take(all, 40);
    TrainingLoader straight(&source, options);
    LoaderPosition position;
    for (size_t i = 0; i < 30; ++i) {
      TrainingLoader resumed(&source, options, position);
      const auto batches = Take(resumed, 10);
      EXPECT_TRUE(std::equal(batches.begin(), batches.end(),
                             expected.begin() + static_cast<int64_t>(i)))
          << "at batch " << i << ", " << bucket_batches << " in a pool";
      position = straight.Next()->next;
    }
  }
}

TEST(TrainingLoaderTest, PutsExamplesOfLikeLengthTogether) {
  const FakeSource source(400, {1});
  TrainingLoaderOptions options = kOptions;
  options.bucket_batches = 100;
  TrainingLoader loader(&source, options);
  std::vector<int64_t> lengths;  // of the batches' first examples
  for (int i = 0; i < 100; ++i) {
    const auto batch = loader.Next();
    ASSERT_TRUE(batch.ok());
    ASSERT_THAT(batch->micro_batches, ElementsAre(SizeIs(2), SizeIs(2)));
    // 40 examples of each length, so no batch mixes two.
    const int64_t length = batch->micro_batches[0][0]->long_length();
    EXPECT_EQ(batch->micro_batches[1][1]->long_length(), length);
    lengths.push_back(length);
  }
  EXPECT_FALSE(std::is_sorted(lengths.begin(), lengths.end()));
}

TEST(TrainingLoaderTest, OrdersTheBatchesOfAPoolAnewInEachEpoch) {
  // Ten batches of one length each, in one pool.
  const FakeSource source(40, {1});
  TrainingLoaderOptions options = kOptions;
  options.bucket_batches = 10;
  TrainingLoader loader(&source, options);
  std::vector<std::vector<int64_t>> lengths(2);  // by epoch
  for (std::vector<int64_t>& of_epoch : lengths) {
    for (int i = 0; i < 10; ++i) {
      const auto batch = loader.Next();
      ASSERT_TRUE(batch.ok());
      of_epoch.push_back(batch->micro_batches[0][0]->long_length());
    }
    EXPECT_THAT(of_epoch, UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  }
  EXPECT_NE(lengths[0], lengths[1]);
}

TEST(TrainingLoaderTest, CutsMicroBatchesInOrderOfLength) {
  const FakeSource source(40, {1});
  TrainingLoaderOptions options = kOptions;
  options.bucket_batches = 1;
  options.batch_size = 8;
  options.micro_batch_size = 3;
  TrainingLoader loader(&source, options);
  const auto batch = loader.Next();
  ASSERT_TRUE(batch.ok());
  EXPECT_THAT(batch->micro_batches,
              ElementsAre(SizeIs(3), SizeIs(3), SizeIs(2)));
  int64_t length = 0;
  for (const Examples& examples : batch->micro_batches) {
    for (const auto& example : examples) {
      EXPECT_GE(example->long_length(), length);
      length = example->long_length();
    }
  }
}

TEST(TrainingLoaderTest, StopsAtABadRecordOrSkipsIt) {
  FakeSource source(9, {1});
  source.bad_records = {5};
  TrainingLoaderOptions options = kOptions;
  options.bucket_batches = 2;
  TrainingLoader strict(&source, options);
  EXPECT_EQ(strict.Next().status(), absl::InvalidArgumentError("bad record 5"));

  options.on_bad_record = OnBadRecord::kSkip;
  TrainingLoader lenient(&source, options);
  for (const auto& batch : Take(lenient, 6)) {  // three epochs
    EXPECT_THAT(batch, Each(testing::Ne("5/0")));
  }
  EXPECT_EQ(lenient.skipped().count, 1);
  EXPECT_EQ(lenient.skipped().first_message, "bad record 5");
}

TEST(TrainingLoaderTest, LeavesOutWhatCannotBeTrainedOnAndCountsItOnce) {
  FakeSource source(5, {2});
  source.left_out = {{"0/0", "too long"}, {"3/0", "empty"}, {"3/1", "empty"}};
  TrainingLoaderOptions options = kOptions;
  options.batch_size = 7;
  TrainingLoader loader(&source, options);
  for (const auto& batch : Take(loader, 3)) {  // three epochs
    EXPECT_THAT(batch, UnorderedElementsAre("0/1", "1/0", "1/1", "2/0", "2/1",
                                            "4/0", "4/1"));
  }
  EXPECT_THAT(
      loader.skipped().left_out,
      ElementsAre(testing::Pair("empty", 2), testing::Pair("too long", 1)));
  EXPECT_EQ(loader.skipped().count, 0);
}

TEST(TrainingLoaderTest, CountsARecordThatWasCutOnceAndNamesTheWorst) {
  FakeSource source(5, {2});
  source.truncated = {"1/0", "1/1", "3/0", "4/1"};
  source.left_out = {{"4/1", "too long"}};
  TrainingLoaderOptions options = kOptions;
  options.batch_size = 9;
  TrainingLoader loader(&source, options);
  EXPECT_THAT(Take(loader, 3), Each(SizeIs(9)));  // three epochs
  EXPECT_EQ(loader.skipped().records, 5);
  EXPECT_EQ(loader.skipped().truncated, 2);
  const std::string cut =
      "cut: see data.max_long_length, data.max_global_length and the options "
      "of the task; \"";
  EXPECT_EQ(
      TruncatedText(loader.skipped()),
      absl::StrCat("2 records were ", cut, "3/0\" lost the most, 300 pieces"));
  // Another source: workers of the loader above still read that one.
  FakeSource other_source(5, {2});
  other_source.truncated = {"1/0"};
  other_source.left_out = {{"4/1", "too long"}};
  TrainingLoader other(&other_source, options);
  EXPECT_THAT(Take(other, 1), Each(SizeIs(9)));
  EXPECT_EQ(TruncatedText(other.skipped()),
            absl::StrCat("1 record was ", cut, "1/0\" lost 100 pieces"));
}

TEST(EvaluationLoaderTest, KeepsWhatTrainingLeavesOut) {
  FakeSource source(2, {1});
  source.left_out = {{"0/0", "too long"}};
  EvaluationLoader loader(&source, {.batch_size = 3});
  const auto round = loader.Next();
  ASSERT_TRUE(round.ok()) << round.status();
  EXPECT_THAT(round->batches, ElementsAre(SizeIs(2)));
  EXPECT_THAT(loader.skipped().left_out, testing::IsEmpty());
}

TEST(TrainingLoaderTest, StopsAtAnUnreadableRecordInAnyCase) {
  FakeSource source(9, {1});
  source.unreadable_record = 5;
  TrainingLoaderOptions options = kOptions;
  options.on_bad_record = OnBadRecord::kSkip;
  TrainingLoader loader(&source, options);
  EXPECT_EQ(loader.Next().status(), absl::DataLossError("disk on fire"));
}

TEST(TrainingLoaderTest, RefusesDataThatFillNoBatch) {
  const FakeSource three(3, {1});
  TrainingLoader loader(&three, kOptions);
  EXPECT_THAT(loader.Next().status().message(),
              AllOf(HasSubstr("have 3 examples"), HasSubstr("batch of 4")));
  const FakeSource none(0, {1});
  TrainingLoader empty(&none, kOptions);
  EXPECT_THAT(empty.Next().status().message(), HasSubstr("have 0 examples"));
}

TEST(TrainingLoaderTest, SaysWhyNoBatchIsFilled) {
  FakeSource source(6, {1});
  source.left_out = {{"0/0", "too long"},
                     {"1/0", "empty"},
                     {"2/0", "too long"},
                     {"4/0", "too long"}};
  source.bad_records = {3};
  TrainingLoaderOptions options = kOptions;
  options.on_bad_record = OnBadRecord::kSkip;
  TrainingLoader loader(&source, options);
  EXPECT_EQ(loader.Next().status(),
            absl::FailedPreconditionError(
                "the training data have 1 example, which is less than one "
                "batch of 4 (train.batch_size); 1 is left out: empty; 3 are "
                "left out: too long; skipped 1 bad record: bad record 3"));
}

// Pools larger than an epoch are one epoch each.
TEST(TrainingLoaderTest, TakesAnyNumberOfBatchesForAPool) {
  const FakeSource source(41, {1, 2, 0, 1});
  TrainingLoaderOptions options = kOptions;
  options.bucket_batches = 100;
  TrainingLoader expected(&source, options);
  const auto batches = Take(expected, 40);
  for (const int64_t huge :
       {int64_t{100000000000}, std::numeric_limits<int64_t>::max()}) {
    options.bucket_batches = huge;
    TrainingLoader loader(&source, options);
    EXPECT_EQ(Take(loader, 40), batches) << huge;
  }
}

TEST(TrainingLoaderTest, GivesTheSameOrderWithAnyMemoryForPrefetching) {
  const FakeSource source(41, {1, 2, 0, 1});
  TrainingLoader expected(&source, kOptions);
  const auto batches = Take(expected, 60);
  for (const int64_t bytes : {0, 1, 3000, 20000}) {
    TrainingLoaderOptions options = kOptions;
    options.workers = 3;
    options.max_prefetch_bytes = bytes;
    TrainingLoader loader(&source, options);
    EXPECT_EQ(Take(loader, 60), batches) << bytes << " bytes";
  }
}

TEST(TrainingLoaderTest, RefusesAPoolThatTakesTooMuchMemory) {
  const FakeSource source(41, {1});
  TrainingLoaderOptions options = kOptions;
  options.max_pool_bytes = 8 * ExampleBytes(*source.Make({.record = 0}));
  TrainingLoader loader(&source, options);
  const absl::Status status = loader.Next().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("data.bucket_batches (3)"),
                                      HasSubstr("train.batch_size (4)")));
  options.bucket_batches = 1;
  TrainingLoader smaller(&source, options);
  EXPECT_THAT(Take(smaller, 5), SizeIs(5));
}

TEST(TrainingLoaderTest, EndsWhenItIsStopped) {
  const FakeSource source(41, {1});
  std::atomic<bool> stop = false;
  TrainingLoaderOptions options = kOptions;
  options.bucket_batches = 1;
  options.stop = &stop;
  TrainingLoader loader(&source, options);
  ASSERT_TRUE(loader.Next().ok());
  stop = true;
  EXPECT_EQ(loader.Next().status().code(), absl::StatusCode::kCancelled);
  EvaluationLoader evaluation(&source, {.stop = &stop});
  EXPECT_EQ(evaluation.Next().status().code(), absl::StatusCode::kCancelled);
}

TEST(TrainingLoaderTest, RefusesAPositionBeyondTheData) {
  const FakeSource source(8, {1});
  TrainingLoader record(&source, kOptions, {.record = 8});
  EXPECT_THAT(record.Next().status().message(), HasSubstr("at record 8"));
  TrainingLoader batch(&source, kOptions, {.batch = 2});
  EXPECT_THAT(batch.Next().status().message(), HasSubstr("at batch 2"));
  for (const LoaderPosition position :
       {LoaderPosition{.record = -1}, LoaderPosition{.example = -1},
        LoaderPosition{.batch = -1}}) {
    TrainingLoader before(&source, kOptions, position);
    EXPECT_THAT(before.Next().status().message(), HasSubstr(" -1"));
  }
}

TEST(EvaluationLoaderTest, KeepsFileOrderAndDropsNothing) {
  FakeSource source(8, {1, 2, 0, 1});
  source.bad_records = {4};
  for (const int64_t workers : {0, 3}) {
    EvaluationLoader loader(&source, {.batch_size = 3,
                                      .workers = workers,
                                      .on_bad_record = OnBadRecord::kSkip});
    std::vector<std::string> ids;
    std::vector<size_t> sizes;
    while (true) {
      const auto round = loader.Next();
      ASSERT_TRUE(round.ok());
      if (round->batches.empty()) {
        break;
      }
      sizes.push_back(round->batches.front().size());
      EXPECT_EQ(round->num_examples, sizes.back());
      for (const auto& example : round->batches.front()) {
        ids.push_back(example->record_id);
      }
    }
    EXPECT_THAT(ids,
                ElementsAre("0/0", "1/0", "1/1", "3/0", "5/0", "5/1", "7/0"));
    EXPECT_THAT(sizes, ElementsAre(3, 3, 1));
    EXPECT_EQ(loader.skipped().count, 1);
  }
}

// Two files of three records each; the second one's ids are those of the first.
class TwoFiles : public ExampleSource {
 public:
  explicit TwoFiles(Example::IdKind id_kind) : id_kind_(id_kind) {}

  int64_t size() const override { return 6; }
  absl::StatusOr<Examples> Make(RecordRequest request) const override {
    auto example = std::make_shared<Example>();
    example->record_id = absl::StrCat("q", request.record % 3);
    example->id_kind = id_kind_;
    example->long_token_ids = {static_cast<int32_t>(
        request.record == differs ? 7 : request.record % 3)};
    // Windows of one record have its id.
    return Examples{example, example};
  }
  std::string Where(int64_t record) const override {
    return absl::StrCat(record < 3 ? "a.csv" : second, ":", record % 3);
  }

  int64_t differs = -1;
  std::string second = "b.csv";

 private:
  const Example::IdKind id_kind_;
};

// The status at the end of all batches.
absl::Status StatusOf(const ExampleSource& source, bool predicts) {
  EvaluationLoader loader(&source, {.batch_size = 4,
                                    .on_bad_record = OnBadRecord::kSkip,
                                    .predicts = predicts});
  while (true) {
    const auto round = loader.Next();
    if (!round.ok()) {
      return round.status();
    }
    if (round->batches.empty()) {
      EXPECT_EQ(loader.skipped().count, 0);
      return absl::OkStatus();
    }
  }
}

TEST(EvaluationLoaderTest, RefusesIdsThatComeAgain) {
  const absl::Status again = absl::InvalidArgumentError(
      "b.csv:0: the id \"q0\" should occur once, but is that of a.csv:0 too");
  const TwoFiles unique(Example::IdKind::kUnique);
  EXPECT_EQ(StatusOf(unique, /*predicts=*/false), again);
  EXPECT_EQ(StatusOf(unique, /*predicts=*/true), again);
  // Numbers are those of a file each, but a file of predictions has no files.
  TwoFiles numbered(Example::IdKind::kNumber);
  EXPECT_EQ(StatusOf(numbered, /*predicts=*/false), absl::OkStatus());
  EXPECT_EQ(StatusOf(numbered, /*predicts=*/true), again);
  numbered.second = "a.csv";
  EXPECT_EQ(StatusOf(numbered, /*predicts=*/false),
            absl::InvalidArgumentError("a.csv:0: the id \"q0\" should occur "
                                       "once, but is that of a.csv:0 too"));
  TwoFiles texts(Example::IdKind::kOfText);
  EXPECT_EQ(StatusOf(texts, /*predicts=*/true), absl::OkStatus());
  texts.differs = 3;
  EXPECT_EQ(StatusOf(texts, /*predicts=*/true), again);
}

}  // namespace
}  // namespace etc
