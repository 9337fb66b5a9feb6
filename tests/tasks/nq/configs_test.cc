// The shipped configurations can be read and have the published
// hyper-parameters (nq spec 8: RealFormer, Table 12), and the demo's training
// goes as it did: the losses of its first ten updates, to 5e-4, which other
// CPUs and thread counts stay within.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tasks/nq/task.h"
#include "tasks/train/config.h"
#include "tests/support/shipped_config.h"

namespace etc {
namespace {

TEST(NqConfigsTest, HaveThePublishedHyperParameters) {
  for (const char* name : {"base.json", "large.json"}) {
    SCOPED_TRACE(name);
    const FinetuneConfig config = ReadShipped("nq", name, {"init="});
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
    const auto options = NqOptionsFromJson(config.task_options, name);
    ASSERT_TRUE(options.ok()) << options.status();
    EXPECT_EQ(options->example.stride, 2048);
    EXPECT_EQ(options->example.max_question_length, 32);
    EXPECT_EQ(options->decoding.max_short_answer_length, 32);
    EXPECT_FALSE(options->example.official_compatibility);
  }
}

TEST(NqConfigsTest, AreAllReadByThisTest) {
  EXPECT_THAT(
      ShippedConfigs("nq"),
      testing::UnorderedElementsAre("base.json", "large.json", "demo.json"));
}

TEST(NqLossCurveTest, IsAsItWas) {
  const std::vector<double> sum = {3.89357, 3.90766, 3.88195, 3.82381, 3.75641,
                                   3.7303,  3.72217, 3.71404, 3.69215, 3.67419};
  const std::vector<double> off = {3.8832,  3.91019, 3.88802, 3.83454, 3.76896,
                                   3.75361, 3.73986, 3.72603, 3.70243, 3.69361};
  constexpr double kTolerance = 5e-4;
  EXPECT_THAT(
      DemoLosses("nq", "train.jsonl", "sum", {"train.learning_rate=1e-4"}),
      testing::Pointwise(testing::DoubleNear(kTolerance), sum));
  EXPECT_THAT(
      DemoLosses("nq", "train.jsonl", "off", {"train.learning_rate=1e-4"}),
      testing::Pointwise(testing::DoubleNear(kTolerance), off));
}

}  // namespace
}  // namespace etc
