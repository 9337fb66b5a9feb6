// A Predictor used by ten threads at once: each gets what one thread alone
// gets, whatever batches its records were in. The preset `tsan` runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tasks/inference/predictor.h"
#include "tests/support/demo_predictor.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

// Texts of 1 to `count` words, and one record without a text.
std::vector<std::string> Records(int count) {
  std::vector<std::string> records;
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += "the town ";
    records.push_back(
        nlohmann::json{{"id", absl::StrCat(i)}, {"text", text}}.dump());
  }
  records.emplace_back("{}");
  return records;
}

std::string TextOf(const absl::StatusOr<RecordPrediction>& prediction) {
  return prediction.ok() ? prediction->json : "no prediction";
}

TEST(PredictorThreadsTest, TenThreadsGetWhatOneGets) {
  constexpr int kThreads = 10;
  constexpr int kRecords = 9;
  const TemporaryDirectory directory;
  const Predictor predictor = OpenOrFail(
      DemoCheckpoint("classify", directory.path(),
                     {"data.max_long_length=64", "classify.text=[\"text\"]"}),
      {.batch_size = 4, .threads = 2});
  const std::vector<std::string> records = Records(kRecords);
  std::vector<std::string> expected;
  for (const std::string& record : records) {
    expected.push_back(TextOf(predictor.Predict(record)));
  }
  EXPECT_EQ(std::count(expected.begin(), expected.end(), "no prediction"), 1);
  EXPECT_NE(expected[0], expected[1]);
  std::vector<std::vector<std::string>> found(kThreads);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const Predictor copy = predictor;
      if (t % 2 == 0) {
        for (const auto& prediction : copy.Predict(records)) {
          found[t].push_back(TextOf(prediction));
        }
        return;
      }
      for (const std::string& record : records) {
        found[t].push_back(TextOf(copy.Predict(record)));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const std::vector<std::string>& one : found) {
    EXPECT_EQ(one, expected);
  }
}

}  // namespace
}  // namespace etc
