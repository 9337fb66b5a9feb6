// The shipped configurations can be read and have the published
// hyper-parameters (doc/nq.md 8: RealFormer, Table 12), and the demo's training
// goes as it did: the losses of its first ten updates, to 5e-4, which other
// CPUs and thread counts stay within.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tasks/config/config.h"
#include "tasks/nq/task.h"
#include "tasks/task/benchmark_task.h"
#include "tests/support/shipped_config.h"

namespace etc {
namespace {

TEST(NqConfigsTest, HaveThePublishedHyperParameters) {
  for (const char* name : {"base.json", "large.json"}) {
    SCOPED_TRACE(name);
    const RunConfig config = ReadShipped("nq", name, {"init="});
    EXPECT_EQ(config.task, "nq");
    EXPECT_EQ(config.train.batch_size, 64);
    EXPECT_EQ(config.train.learning_rate, 3e-5);
    EXPECT_EQ(config.train.epochs, 2);
    EXPECT_EQ(config.optimizer.weight_decay, 0.01);
    EXPECT_EQ(config.optimizer.type, "bert_adamw");
    EXPECT_EQ(config.schedule.warmup_proportion, 0.1);
    EXPECT_EQ(config.data.max_long_length, 4096);
    EXPECT_EQ(config.data.max_global_length, 230);
    EXPECT_TRUE(config.json.contains("residual_attention"));
    EXPECT_TRUE(config.model.use_hard_g2l_mask);
    const auto options = ReadTaskOptions<Nq>(config.task_options, name);
    ASSERT_TRUE(options.ok()) << options.status();
    EXPECT_EQ(options->stride, 2048);
    EXPECT_EQ(options->max_question_length, 32);
    EXPECT_EQ(options->max_short_answer_length, 32);
    EXPECT_FALSE(options->official_compatibility);
  }
}

TEST(NqConfigsTest, AreAllReadByThisTest) {
  EXPECT_THAT(
      ShippedConfigs("nq"),
      testing::UnorderedElementsAre("base.json", "large.json", "demo.json"));
}

TEST(NqLossCurveTest, IsAsItWas) {
  const std::vector<double> sum = {3.89665, 4.17281, 4.12889, 3.81262, 3.7487,
                                   3.73342, 3.7119,  3.71552, 3.68521, 3.6593};
  constexpr double kTolerance = 5e-4;
  EXPECT_THAT(
      DemoLosses("nq", "train.jsonl.gz", "sum", {"train.learning_rate=1e-4"}),
      testing::Pointwise(testing::DoubleNear(kTolerance), sum));
}

}  // namespace
}  // namespace etc
