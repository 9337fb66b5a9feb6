// The runs of a configuration: the examples of data that several settings share
// are counted once, and a run needs nobody who listens.
#include "tasks/train/finetune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tests/tasks/data/fake_source.h"
#include "tests/tasks/train/toy_run_fixture.h"

namespace etc {
namespace {

using testing::HasSubstr;

TEST(CheckRunsTest, CountsTheExamplesOfSharedDataOnce) {
  auto config = FinetuneConfigFromJson(ToyConfigJson("a", "b", "c"), "toy");
  ASSERT_TRUE(config.ok()) << config.status();
  config->train.seeds = {1, 2};
  auto records = std::make_unique<FakeSource>(3, std::vector<int>{4});
  const FakeSource& source = *records;
  RunData data;
  data.train = std::move(records);
  const auto first = CheckRuns(*config, &data, {});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->num_steps, 2 * 12);
  const int64_t made = source.made;
  EXPECT_GT(made, 0);
  for (const int64_t batch_size : {8, 4}) {
    config->train.batch_size = batch_size;
    EXPECT_TRUE(CheckRuns(*config, &data, {}).ok());
    EXPECT_EQ(source.made, made);
  }
  config->train.batch_size = 13;
  EXPECT_THAT(
      CheckRuns(*config, &data, {}).status().message(),
      HasSubstr("have 12 examples, which is less than one batch of 13"));
  EXPECT_GT(source.made, made);
}

TEST_F(ToyRunTest, TrainsWithNobodyWhoListens) {
  json_["output"] = Output("run");
  const auto config = FinetuneConfigFromJson(json_, "toy");
  ASSERT_TRUE(config.ok()) << config.status();
  const ToyTask task(config->model);
  const auto result = Finetune(*config, task, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->finished);
  FakeReporter reporter;
  ASSERT_TRUE(Run("heard", &reporter).ok());
  ExpectSameRun(Output("run") + "/seed-1", Output("heard") + "/seed-1");
}

}  // namespace
}  // namespace etc
