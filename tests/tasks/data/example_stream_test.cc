// Examples prefetched in threads: order, bound, errors and exceptions, stopping
// half-way; and the source that keeps what was made. Run under the address
// sanitizer too.

#include "tasks/data/example_stream.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/sanitizers.h"

namespace etc {
namespace {

// Waits for `condition`, longer than anything takes on a busy machine. Returns
// true if it came.
bool Await(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(5);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// Record i is one example of i long tokens. The lower the record, the longer
// it takes, so that threads finish out of order.
class SlowSource : public ExampleSource {
 public:
  explicit SlowSource(int64_t size) : size_(size) {}

  int64_t size() const override { return size_; }
  absl::StatusOr<Examples> Make(RecordRequest request) const override {
    const int64_t record = request.record;
    ++calls;
    std::this_thread::sleep_for(
        std::chrono::microseconds(1000 * (size_ - record) / size_));
    // Not for ever, if it is never let go.
    Await([this] { return !is_held; });
    if (record == bad_record) {
      return absl::InvalidArgumentError("bad record");
    }
    if (record == throwing_record) {
      throw std::runtime_error("out of memory, say");
    }
    auto example = std::make_shared<Example>();
    example->long_token_ids.resize(static_cast<size_t>(record));
    return Examples{example};
  }

  mutable std::atomic<int64_t> calls = 0;
  int64_t bad_record = -1;
  int64_t throwing_record = -1;
  std::atomic<bool> is_held = false;  // no record is made while it is

 private:
  int64_t size_;
};

ExampleStream::Sequence CountTo(int64_t size) {
  return [next = int64_t{0}, size]() mutable -> std::optional<RecordRequest> {
    return next < size ? std::optional(RecordRequest{.record = next++})
                       : std::nullopt;
  };
}

class ExampleStreamTest : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Workers, ExampleStreamTest,
                         testing::Values(0, 1, 2, 5));

TEST_P(ExampleStreamTest, KeepsTheOrderOfTheSequence) {
  const SlowSource source(50);
  ExampleStream stream(&source, CountTo(50),
                       {.workers = GetParam(), .prefetch = 7});
  for (int64_t i = 0; i < 50; ++i) {
    const auto made = stream.Next();
    ASSERT_TRUE(made.has_value());
    EXPECT_EQ(made->record, i);
    ASSERT_TRUE(made->examples.ok());
    EXPECT_EQ((*made->examples)[0]->long_length(), i);
  }
  EXPECT_FALSE(stream.Next().has_value());
  EXPECT_FALSE(stream.Next().has_value());
  EXPECT_GT(stream.seconds_waited(), 0);
}

TEST_P(ExampleStreamTest, PrefetchesNoMoreThanItMay) {
  const SlowSource source(50);
  ExampleStream stream(&source, CountTo(50),
                       {.workers = GetParam(), .prefetch = 3});
  ASSERT_TRUE(stream.Next().has_value());
  const int64_t most = GetParam() == 0 ? 1 : 4;
  EXPECT_TRUE(Await([&] { return source.calls >= most; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(source.calls, most);
}

TEST_P(ExampleStreamTest, ReturnsErrorsAndGoesOn) {
  SlowSource source(4);
  source.bad_record = 1;
  ExampleStream stream(&source, CountTo(4), {.workers = GetParam()});
  EXPECT_TRUE(stream.Next()->examples.ok());
  EXPECT_EQ(stream.Next()->examples.status().message(), "bad record");
  EXPECT_TRUE(stream.Next()->examples.ok());
}

TEST_P(ExampleStreamTest, ThrowsInTheCallerWhatAWorkerThrew) {
  SlowSource source(4);
  source.throwing_record = 1;
  ExampleStream stream(&source, CountTo(4), {.workers = GetParam()});
  EXPECT_TRUE(stream.Next()->examples.ok());
  EXPECT_THROW(stream.Next(), std::runtime_error);
}

TEST_P(ExampleStreamTest, StopsHalfWay) {
  // Minutes of work.
  constexpr int64_t kRecords = 1'000'000;
  const SlowSource source(kRecords);
  {
    ExampleStream stream(&source, CountTo(kRecords),
                         {.workers = GetParam(), .prefetch = kRecords});
    stream.Next();
  }
  EXPECT_LT(source.calls, kRecords);
}

// Numbers far beyond the data cost nothing.
TEST_P(ExampleStreamTest, PrefetchesNoMoreThanTheSourceHas) {
  const SlowSource source(5);
  ExampleStream stream(&source, CountTo(1000000),
                       {.workers = GetParam(), .prefetch = 100000000000});
  ASSERT_TRUE(stream.Next().has_value());
  const int64_t most = GetParam() == 0 ? 1 : 6;
  EXPECT_TRUE(Await([&] { return source.calls >= most; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(source.calls, most);
}

TEST(ExampleStreamBytesTest, PrefetchesNoMoreThanFitsTheMemory) {
  const SlowSource source(200);
  const int64_t record_bytes = ExampleBytes(*source.Make({.record = 150}));
  source.calls = 0;
  constexpr int64_t kRecords = 20;
  int64_t next = 100;
  ExampleStream stream(&source,
                       [&]() -> std::optional<RecordRequest> {
                         return RecordRequest{.record = next++ % 200};
                       },
                       {.workers = 2,
                        .prefetch = 100,
                        .max_prefetch_bytes = kRecords * record_bytes});
  for (int64_t i = 0; i < 300; ++i) {
    const auto made = stream.Next();
    ASSERT_TRUE(made.has_value() && made->examples.ok());
    EXPECT_EQ(made->record, (100 + i) % 200);
    std::this_thread::sleep_for(
        std::chrono::milliseconds(i % 50 == 0 ? 30 : 0));
    // Examples differ by some hundred bytes; one more record by each worker.
    EXPECT_LE(source.calls, i + 1 + kRecords + 15);
  }
}

// With no memory at all a worker still makes what is asked for.
TEST(ExampleStreamBytesTest, GoesOnWithoutMemoryForPrefetching) {
  const SlowSource source(50);
  ExampleStream stream(&source, CountTo(50),
                       {.workers = 3, .prefetch = 20, .max_prefetch_bytes = 0});
  for (int64_t i = 0; i < 50; ++i) {
    ASSERT_EQ(stream.Next()->record, i);
    EXPECT_LE(source.calls, i + 1 + 3);
  }
}

// A record that is held, and a flag that is set while it is waited for.
TEST_P(ExampleStreamTest, WaitsNoLongerOnceItIsStopped) {
  SlowSource source(3);
  source.is_held = true;
  std::atomic<bool> stop = false;
  ExampleStream stream(&source, CountTo(3),
                       {.workers = GetParam(), .stop = &stop});
  std::thread other([&] {
    EXPECT_TRUE(Await([&] { return source.calls > 0; }));
    stop = true;
    if (GetParam() == 0) {
      source.is_held = false;  // the thread that waits makes it itself
    }
  });
  const auto made = stream.Next();
  other.join();
  if (GetParam() > 0) {
    EXPECT_EQ(made->examples.status().code(), absl::StatusCode::kCancelled);
    EXPECT_TRUE(source.is_held);
    source.is_held = false;
  }
  EXPECT_EQ(stream.Next()->examples.status().code(),
            absl::StatusCode::kCancelled);
  EXPECT_LE(source.calls, std::max<int64_t>(1, GetParam()));
}

// Each thread reserves some MiB of addresses. In a process of its own, which
// must neither abort nor hang.
TEST(ExampleStreamDeathTest, SaysWhenThreadsCannotBeStarted) {
  if (kSanitized) {
    GTEST_SKIP() << "a sanitizer reserves more addresses than can be allowed";
  }
  const auto start_too_many = [] {
    const struct rlimit limit = {size_t{1} << 30, size_t{1} << 30};
    setrlimit(RLIMIT_AS, &limit);
    const SlowSource source(100000);
    ExampleStream stream(&source, CountTo(100000),
                         {.workers = 100000, .prefetch = 100000});
    const auto made = stream.Next();
    std::cerr << made->examples.status() << std::endl;
    _exit(made->examples.status().code() == absl::StatusCode::kResourceExhausted
              ? 0
              : 1);
  };
  EXPECT_EXIT(start_too_many(), testing::ExitedWithCode(0),
              "of 100000 threads that make examples \\(data.workers\\)");
}

TEST(CachedSourceTest, NeverKeepsMoreThanItsBudget) {
  const SlowSource source(100);
  const int64_t record_bytes = ExampleBytes(*source.Make({.record = 50}));
  const CachedSource cached(&source, 10 * record_bytes);
  for (int64_t record = 0; record < 100; ++record) {
    ASSERT_TRUE(cached.Make({.record = record}).ok());
  }
  source.calls = 0;
  for (int64_t record = 0; record < 100; ++record) {
    ASSERT_TRUE(cached.Make({.record = record}).ok());
  }
  // Examples of the first ten or so records, which are a little smaller, are
  // kept.
  EXPECT_GE(source.calls, 100 - 12);
  EXPECT_LE(source.calls, 100 - 10);
}

TEST(CachedSourceTest, KeepsWhatFitsItsBudget) {
  const SlowSource source(3);
  const CachedSource cached(&source, 1 << 20);
  const auto first = cached.Make({.record = 2});
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(*cached.Make({.record = 2}), *first);
  EXPECT_EQ(source.calls, 1);

  const CachedSource without_room(&source, 100);
  ASSERT_TRUE(without_room.Make({.record = 2}).ok());
  ASSERT_TRUE(without_room.Make({.record = 2}).ok());
  EXPECT_EQ(source.calls, 3);
}

struct MegabyteExample : public Example {
  int64_t TaskBytes() const override { return 1'000'000; }
};

// Four records of a megabyte, which a task keeps beside the tokens.
class MegabyteSource : public ExampleSource {
 public:
  int64_t size() const override { return 4; }
  absl::StatusOr<Examples> Make(RecordRequest /*request*/) const override {
    ++calls;
    return Examples{std::make_shared<MegabyteExample>()};
  }

  mutable std::atomic<int64_t> calls = 0;
};

TEST(CachedSourceTest, CountsThePartsOfTasks) {
  const MegabyteSource source;
  const CachedSource cached(&source, 2'500'000);
  for (int round = 0; round < 2; ++round) {
    for (int64_t record = 0; record < source.size(); ++record) {
      ASSERT_TRUE(cached.Make({.record = record}).ok());
    }
  }
  EXPECT_EQ(source.calls, 4 + 2);  // two of them are kept
}

TEST(CachedSourceTest, KeepsNoErrors) {
  SlowSource source(3);
  source.bad_record = 1;
  const CachedSource cached(&source, 1 << 20);
  EXPECT_FALSE(cached.Make({.record = 1}).ok());
  EXPECT_FALSE(cached.Make({.record = 1}).ok());
}

}  // namespace
}  // namespace etc
