// The loaders of several processes, which are threads here: together they give
// the very micro-batches of one process, each to one of them, whatever their
// number, from any position on; the same errors and counts in all; and how many
// records each of them makes.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/data/evaluation_loader.h"
#include "tasks/data/loader.h"
#include "tests/tasks/data/fake_source.h"
#include "tests/tasks/data/thread_group.h"

namespace etc {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Ids = std::vector<std::string>;

Ids IdsOf(const Examples& examples) {
  Ids ids;
  for (const auto& example : examples) {
    ids.push_back(example->record_id);
  }
  return ids;
}

// The next `count` batches, each as the ids of its micro-batches.
std::vector<std::vector<Ids>> Take(TrainingLoader& loader, int count) {
  std::vector<std::vector<Ids>> batches;
  for (int i = 0; i < count; ++i) {
    const auto batch = loader.Next();
    EXPECT_TRUE(batch.ok()) << batch.status();
    if (!batch.ok()) {
      break;
    }
    std::vector<Ids>& micro_batches = batches.emplace_back();
    for (const Examples& examples : batch->micro_batches) {
      micro_batches.push_back(IdsOf(examples));
    }
  }
  return batches;
}

constexpr int64_t kBatchSize = 6;

TrainingLoaderOptions Options(const DataGroup& group = {}) {
  return {.seed = 3,
          .batch_size = kBatchSize,
          .micro_batch_size = 1,
          .bucket_batches = 3,
          .group = group};
}

// The batches of so many processes from `start` on, put together.
std::vector<std::vector<Ids>> TakeTogether(const ExampleSource& source,
                                           int64_t processes, int64_t workers,
                                           int64_t micro_batch_size,
                                           LoaderPosition start, int count) {
  std::mutex mutex;
  std::vector<std::vector<Ids>> all(static_cast<size_t>(count));
  RunAsGroup(processes, [&](const DataGroup& group) {
    TrainingLoaderOptions options = Options(group);
    options.workers = workers;
    options.micro_batch_size = micro_batch_size;
    TrainingLoader loader(&source, options, start);
    const auto batches = Take(loader, count);
    const std::lock_guard<std::mutex> lock(mutex);
    for (size_t i = 0; i < batches.size(); ++i) {
      EXPECT_TRUE(std::any_of(batches[i].begin(), batches[i].end(),
                              [](const Ids& ids) { return !ids.empty(); }))
          << "process " << group.rank << " has nothing to do";
      all[i].resize(batches[i].size());
      for (size_t m = 0; m < batches[i].size(); ++m) {
        if (!batches[i][m].empty()) {
          EXPECT_THAT(all[i][m], IsEmpty()) << "it was dealt twice";
          all[i][m] = batches[i][m];
        }
      }
    }
  });
  return all;
}

TEST(SharedLoaderTest, GivesTheMicroBatchesOfOneProcess) {
  const FakeSource source(41, {1, 2, 0, 1});
  for (const int64_t micro_batch_size : {1, 2}) {
    TrainingLoaderOptions options = Options();
    options.micro_batch_size = micro_batch_size;
    TrainingLoader one(&source, options);
    const auto expected = Take(one, 40);
    for (const int64_t processes : {2, 3}) {
      for (const int64_t workers : {0, 2}) {
        EXPECT_EQ(
            TakeTogether(source, processes, workers, micro_batch_size, {}, 40),
            expected)
            << processes << " processes, " << workers << " workers";
      }
    }
  }
}

TEST(SharedLoaderTest, GoesOnAtAnyBatchWithAnyNumber) {
  const FakeSource source(41, {1, 2, 0, 1});
  TrainingLoader all(&source, Options());
  const auto expected = Take(all, 20);
  TrainingLoader straight(&source, Options());
  LoaderPosition position;
  for (int i = 0; i < 15; ++i) {
    const auto batches = TakeTogether(source, 1 + i % 4, 1, 1, position, 5);
    EXPECT_TRUE(
        std::equal(batches.begin(), batches.end(), expected.begin() + i))
        << "at batch " << i;
    position = straight.Next()->next;
  }
}

// Three of four ranks have a record each, and all have work.
TEST(SharedLoaderTest, NeedsNoRecordOfEachProcess) {
  const FakeSource source(3, {2});
  TrainingLoader one(&source, Options());
  EXPECT_EQ(TakeTogether(source, 4, 1, 1, {}, 9), Take(one, 9));
}

// Returns the records that each rank makes in `epochs` epochs, as a share.
std::vector<double> SharesMade(int64_t processes, int64_t micro_batch_size,
                               int examples_each, int epochs) {
  constexpr int64_t kRecords = 300;
  std::vector<double> shares(static_cast<size_t>(processes));
  RunAsGroup(processes, [&](const DataGroup& group) {
    const FakeSource source(kRecords, {examples_each});
    TrainingLoaderOptions options = Options(group);
    options.batch_size = 12;
    options.micro_batch_size = micro_batch_size;
    options.workers = 0;  // nothing is made ahead
    TrainingLoader loader(&source, options);
    Take(loader, static_cast<int>(kRecords) * examples_each / 12 * epochs);
    shares[static_cast<size_t>(group.rank)] =
        static_cast<double>(source.made) /
        static_cast<double>(kRecords * epochs);
  });
  return shares;
}

TEST(SharedLoaderTest, MakesLittleMoreThanItsShare) {
  EXPECT_THAT(SharesMade(1, 1, 1, 2), ElementsAre(1));
  for (const int64_t processes : {2, 3, 4}) {
    const double share = 1.0 / static_cast<double>(processes);
    EXPECT_THAT(SharesMade(processes, 1, 1, 2), Each(testing::Le(share + 0.1)))
        << processes << " processes";
    // A record is wanted where any of its examples is computed.
    EXPECT_THAT(SharesMade(processes, 1, 4, 2), Each(testing::Le(share + 0.3)))
        << processes << " processes";
    // Records of others are in nearly each micro-batch.
    EXPECT_THAT(SharesMade(processes, 3, 1, 2),
                Each(testing::Le(share + share * (1 - share) + 0.05)));
  }
}

TEST(SharedLoaderTest, MeetsABadRecordInAllProcesses) {
  FakeSource source(30, {1});
  source.bad_records = {17};
  RunAsGroup(3, [&](const DataGroup& group) {
    TrainingLoader strict(&source, Options(group));
    absl::Status status;
    for (int i = 0; i < 5 && status.ok(); ++i) {
      status = strict.Next().status();
    }
    EXPECT_EQ(status, absl::InvalidArgumentError("bad record 17"));

    TrainingLoaderOptions options = Options(group);
    options.on_bad_record = OnBadRecord::kSkip;
    TrainingLoader lenient(&source, options);
    Take(lenient, 12);  // three epochs
    EXPECT_EQ(lenient.skipped().count, 1);
    EXPECT_EQ(lenient.skipped().first_message, "bad record 17");
  });
}

TEST(SharedLoaderTest, MeetsAnUnreadableRecordInAllProcesses) {
  RunAsGroup(3, [&](const DataGroup& group) {
    FakeSource source(30, {1});
    source.unreadable_record = group.rank == 1 ? 16 : -1;  // made by process 1
    TrainingLoader loader(&source, Options(group));
    absl::Status status;
    for (int i = 0; i < 5 && status.ok(); ++i) {
      status = loader.Next().status();
    }
    EXPECT_EQ(status, absl::DataLossError("disk on fire"));
  });
}

TEST(SharedLoaderTest, CountsWhatIsLeftOutInAllProcesses) {
  FakeSource source(30, {1});
  source.left_out = {{"0/0", "too long"}, {"3/0", "empty"}, {"4/0", "empty"}};
  RunAsGroup(3, [&](const DataGroup& group) {
    TrainingLoader loader(&source, Options(group));
    Take(loader, 9);
    EXPECT_THAT(
        loader.skipped().left_out,
        ElementsAre(testing::Pair("empty", 2), testing::Pair("too long", 1)));
  });
}

TEST(SharedLoaderTest, EndsInAllWhenOneIsStopped) {
  const FakeSource source(41, {1});
  RunAsGroup(3, [&](const DataGroup& group) {
    std::atomic<bool> stop = false;
    TrainingLoaderOptions options = Options(group);
    options.bucket_batches = 1;
    options.stop = group.rank == 2 ? &stop : nullptr;
    TrainingLoader loader(&source, options);
    ASSERT_TRUE(loader.Next().ok());
    // Elsewhere the rest of a block may be there still.
    stop = true;
    absl::Status status;
    for (int i = 0; i < 3; ++i) {
      const absl::Status next = loader.Next().status();
      const auto all = group.gather(next.ok() ? "" : "stopped");
      status = next.ok() ? status : next;
      if (std::count(all->begin(), all->end(), "stopped") > 0) {
        break;
      }
    }
    if (group.rank == 2) {
      EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
    }
  });
}

TEST(SharedLoaderTest, RefusesAPoolThatTakesTooMuchInAllProcesses) {
  const FakeSource source(41, {1});
  const int64_t bytes = 10 * ExampleBytes(*source.Make({.record = 0}));
  for (const int64_t processes : {1, 3}) {
    RunAsGroup(processes, [&](const DataGroup& group) {
      TrainingLoaderOptions options = Options(group);
      options.max_pool_bytes = bytes;
      TrainingLoader loader(&source, options);
      // 18 examples: six of each of three processes.
      EXPECT_EQ(loader.Next().status().code(),
                processes == 1 ? absl::StatusCode::kResourceExhausted
                               : absl::StatusCode::kOk);
      options.max_pool_bytes = bytes / 3;
      TrainingLoader smaller(&source, options);
      EXPECT_EQ(smaller.Next().status().code(),
                absl::StatusCode::kResourceExhausted);
    });
  }
}

TEST(SharedLoaderTest, NoticesOtherData) {
  std::atomic<int> refused = 0;
  RunAsGroup(2, [&](const DataGroup& group) {
    FakeSource source(41, {1});
    source.longer_by = group.rank;
    TrainingLoaderOptions options = Options(group);
    options.micro_batch_size = 3;
    TrainingLoader loader(&source, options);
    const absl::Status status = loader.Next().status();
    if (!status.ok()) {
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_THAT(std::string(status.message()), HasSubstr("the same data"));
      ++refused;
    }
  });
  EXPECT_GE(refused, 1);
}

TEST(SharedLoaderTest, PassesOnThatAProcessHasEnded) {
  const FakeSource source(41, {1});
  const auto lost = [](const std::string&) {
    return absl::StatusOr<std::vector<std::string>>(
        absl::UnavailableError("process 1 has ended"));
  };
  const DataGroup group = {.rank = 0, .size = 2, .gather = lost};
  TrainingLoader training(&source, Options(group));
  EXPECT_EQ(training.Next().status().message(), "process 1 has ended");
  EvaluationLoader evaluation(&source, {.group = group});
  EXPECT_EQ(evaluation.Next().status().message(), "process 1 has ended");
}

// The rounds of a process; its own batches alone, unless it is the first.
std::vector<std::vector<Ids>> Rounds(EvaluationLoader& loader) {
  std::vector<std::vector<Ids>> rounds;
  while (true) {
    const auto round = loader.Next();
    EXPECT_TRUE(round.ok()) << round.status();
    if (!round.ok() || round->batches.empty()) {
      return rounds;
    }
    rounds.emplace_back();
    for (const Examples& batch : round->batches) {
      rounds.back().push_back(IdsOf(batch));
    }
  }
}

TEST(SharedEvaluationTest, GivesTheFirstAllAndOthersTheirOwn) {
  FakeSource with_bad(40, {1, 2, 0, 3});
  with_bad.bad_records = {4, 21};
  const EvaluationLoader::Options options = {
      .batch_size = 3, .on_bad_record = OnBadRecord::kSkip};
  EvaluationLoader one(&with_bad, options);
  std::vector<Ids> expected;
  for (const auto& round : Rounds(one)) {
    ASSERT_THAT(round, SizeIs(1));
    expected.push_back(round.front());
  }
  ASSERT_THAT(expected, SizeIs(19));
  for (const int64_t processes : {2, 3, 4}) {
    std::vector<int64_t> made(static_cast<size_t>(processes));
    RunAsGroup(processes, [&](const DataGroup& group) {
      FakeSource source(40, {1, 2, 0, 3});
      source.bad_records = with_bad.bad_records;
      EvaluationLoader::Options shared = options;
      shared.group = group;
      shared.workers = group.rank % 2;
      EvaluationLoader loader(&source, shared);
      const auto rounds = Rounds(loader);
      for (size_t i = 0; i < expected.size(); ++i) {
        const auto of_round = static_cast<size_t>(processes);
        const size_t turn = i % of_round;
        const bool is_here =
            group.rank == 0 || static_cast<size_t>(group.rank) == turn;
        EXPECT_EQ(rounds[i / of_round][turn], is_here ? expected[i] : Ids())
            << "process " << group.rank;
      }
      EXPECT_EQ(loader.skipped().count, group.rank == 0 ? 2 : 0);
      made[static_cast<size_t>(group.rank)] = source.made;
    });
    EXPECT_EQ(made[0], 40);
    for (size_t rank = 1; rank < made.size(); ++rank) {
      // Records at both ends of a batch may be in another one too.
      EXPECT_LE(made[rank], 3 * (19 / processes + 1));
    }
  }
}

TEST(SharedEvaluationTest, EndsInAllWithTheErrorOfTheFirst) {
  FakeSource source(40, {1});
  source.bad_records = {30};
  RunAsGroup(3, [&](const DataGroup& group) {
    EvaluationLoader loader(&source, {.batch_size = 2, .group = group});
    absl::Status status;
    while (status.ok()) {
      const auto round = loader.Next();
      ASSERT_FALSE(round.ok() && round->batches.empty());
      status = round.status();
    }
    EXPECT_EQ(status, absl::InvalidArgumentError("bad record 30"));
  });
}

}  // namespace
}  // namespace etc
