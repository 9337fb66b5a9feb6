// Examples made ahead in threads: order, bound, errors and exceptions, stopping
// half-way; and the source that keeps what was made. Run under the address
// sanitizer too.

#include "tasks/data/example_stream.h"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace etc {
namespace {

// Record i is one example of i long tokens. The lower the record, the longer
// it takes, so that threads finish out of order.
class SlowSource : public ExampleSource {
 public:
  explicit SlowSource(int64_t size) : size_(size) {}

  int64_t size() const override { return size_; }
  absl::StatusOr<Examples> Make(int64_t record) const override {
    ++calls;
    std::this_thread::sleep_for(
        std::chrono::microseconds(1000 * (size_ - record) / size_));
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

 private:
  int64_t size_;
};

ExampleStream::Sequence CountTo(int64_t size) {
  return [next = int64_t{0}, size]() mutable -> std::optional<int64_t> {
    return next < size ? std::optional<int64_t>(next++) : std::nullopt;
  };
}

class ExampleStreamTest : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Workers, ExampleStreamTest,
                         testing::Values(0, 1, 2, 5));

TEST_P(ExampleStreamTest, KeepsTheOrderOfTheSequence) {
  const SlowSource source(50);
  ExampleStream stream(&source, CountTo(50),
                       {.workers = GetParam(), .ahead = 7});
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

TEST_P(ExampleStreamTest, MakesNoMoreThanItMayAhead) {
  const SlowSource source(50);
  ExampleStream stream(&source, CountTo(50),
                       {.workers = GetParam(), .ahead = 3});
  ASSERT_TRUE(stream.Next().has_value());
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(source.calls, GetParam() == 0 ? 1 : 4);
}

TEST_P(ExampleStreamTest, HandsOutErrorsAndGoesOn) {
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
  const SlowSource source(1000);
  {
    ExampleStream stream(&source, CountTo(1000),
                         {.workers = GetParam(), .ahead = 1000});
    stream.Next();
  }
  EXPECT_LT(source.calls, 1000);
}

TEST(CachedSourceTest, KeepsWhatFitsItsBudget) {
  const SlowSource source(3);
  const CachedSource cached(&source, 1 << 20);
  const auto first = cached.Make(2);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(*cached.Make(2), *first);
  EXPECT_EQ(source.calls, 1);

  const CachedSource without_room(&source, 100);
  ASSERT_TRUE(without_room.Make(2).ok());
  ASSERT_TRUE(without_room.Make(2).ok());
  EXPECT_EQ(source.calls, 3);
}

TEST(CachedSourceTest, KeepsNoErrors) {
  SlowSource source(3);
  source.bad_record = 1;
  const CachedSource cached(&source, 1 << 20);
  EXPECT_FALSE(cached.Make(1).ok());
  EXPECT_FALSE(cached.Make(1).ok());
}

}  // namespace
}  // namespace etc
