// Counting the examples of a training set: all, or as many as decide whether
// there is a batch. Records have 0 to 2 examples.

#include "tasks/data/example_count.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace etc {
namespace {

using ::testing::HasSubstr;

// Record i has i % 3 examples, of which training leaves out one of record 5.
// Truncated are that one, another of record 2, and both of record 8. From
// record 4 on no example holds the answer.
class FakeSource : public ExampleSource {
 public:
  explicit FakeSource(int64_t size) : size_(size) {}

  int64_t size() const override { return size_; }
  absl::StatusOr<Examples> Make(RecordRequest request) const override {
    const int64_t record = request.record;
    ++calls;
    if (record == bad_record) {
      return absl::InvalidArgumentError("bad record");
    }
    Examples examples;
    for (int64_t i = 0; i < record % 3; ++i) {
      auto example = std::make_shared<Example>();
      example->left_out = record == 5 && i == 0 ? "too long" : "";
      example->is_truncated =
          record == 8 || (record == 5 && i == 0) || (record == 2 && i == 1);
      example->lost_answer = record >= 4 && i == 0 ? "it is far" : "";
      examples.push_back(std::move(example));
    }
    return examples;
  }

  mutable std::atomic<int64_t> calls = 0;
  int64_t bad_record = -1;

 private:
  const int64_t size_;
};

TEST(CountTrainingExamplesTest, CountsAllAndTellsOfEachRecord) {
  FakeSource source(9);
  source.bad_record = 8;
  std::vector<int64_t> reported;
  const auto count = CountTrainingExamples(
      source, {.on_bad_record = OnBadRecord::kSkip,
               .listener = [&](int64_t done) { reported.push_back(done); }});
  ASSERT_TRUE(count.ok()) << count.status();
  // 0 1 2 0 1 2 0 1 2, without one of record 5 and both of record 8.
  EXPECT_EQ(count->examples, 6);
  EXPECT_EQ(count->skipped.count, 1);
  EXPECT_EQ(count->skipped.left_out.at("too long"), 1);
  // 2 alone: of 5 the example that was cut is not used, 8 is a bad record.
  EXPECT_EQ(count->skipped.truncated, 1);
  EXPECT_THAT(TruncatedText(count->skipped),
              testing::StartsWith("1 record was cut: see data.max_long_"));
  EXPECT_EQ(TruncatedText({}), "");
  // Records 4, 5 and 7; record 6 has no examples.
  EXPECT_THAT(LossTexts(count->skipped),
              testing::ElementsAre(
                  TruncatedText(count->skipped),
                  "3 records have an answer that no example holds: it is far"));
  EXPECT_THAT(LossTexts({}), testing::IsEmpty());
  EXPECT_THAT(reported, testing::ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_EQ(CountTrainingExamples(source, {}).status(),
            absl::InvalidArgumentError("bad record"));
}

TEST(CheckFillsBatchTest, MakesNoExamplesIfThereAreAsManyRecords) {
  const FakeSource source(9);
  EXPECT_TRUE(CheckFillsBatch(source, 9, {}).ok());
  EXPECT_EQ(source.calls, 0);
}

TEST(CheckFillsBatchTest, CountsTheExamplesOfFewerRecords) {
  const FakeSource source(6);  // 0 1 2 0 1 1: five examples
  EXPECT_TRUE(CheckFillsBatch(source, 6, {}).ok());
  EXPECT_EQ(CheckFillsBatch(source, 7, {}),
            absl::FailedPreconditionError(
                "the training data have 5 examples, which is less than one "
                "batch of 7 (train.batch_size); 1 is left out: too long"));
  const FakeSource nine(9);  // eight examples
  EXPECT_THAT(CheckFillsBatch(nine, 100000000000, {}).message(),
              HasSubstr("have 8 examples"));
  const FakeSource twos(3000);
  EXPECT_FALSE(CheckFillsBatch(twos, 3001, {}).ok());
}

TEST(CheckFillsBatchTest, EndsWhenItIsStopped) {
  const FakeSource source(6);
  const std::atomic<bool> stop = true;
  EXPECT_EQ(CheckFillsBatch(source, 7, {.stream = {.stop = &stop}}).code(),
            absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace etc
