// The shipped configurations can be read and have the published
// hyper-parameters (doc/openkp.md 9.3), and the demo's training goes as it did:
// the losses of its first ten updates, to 5e-4, which other CPUs and thread
// counts stay within.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tasks/config/config.h"
#include "tasks/openkp/task.h"
#include "tasks/task/benchmark_task.h"
#include "tests/support/shipped_config.h"

namespace etc {
namespace {

TEST(OpenkpConfigsTest, HaveThePublishedHyperParameters) {
  for (const char* name : {"base.json", "large.json"}) {
    SCOPED_TRACE(name);
    const RunConfig config = ReadShipped("openkp", name, {"init="});
    EXPECT_EQ(config.task, "openkp");
    EXPECT_EQ(config.train.batch_size, 64);
    EXPECT_EQ(config.train.learning_rate, 3e-5);
    EXPECT_EQ(config.train.epochs, 2);
    EXPECT_EQ(config.train.num_train_examples, 133374);
    EXPECT_EQ(config.optimizer.weight_decay, 0.01);
    EXPECT_EQ(config.optimizer.type, "bert_adamw");
    EXPECT_EQ(config.optimizer.clip_norm, 1.0);
    EXPECT_EQ(config.schedule.warmup_proportion, 0.1);
    EXPECT_EQ(config.data.max_long_length, 4096);
    EXPECT_EQ(config.data.max_global_length, 512);
    EXPECT_TRUE(config.json.contains("residual_attention"));
    EXPECT_TRUE(config.model.use_hard_g2l_mask);
    EXPECT_TRUE(
        ReadTaskOptions<Openkp>(config.task_options, "openkp").status().ok());
  }
}

TEST(OpenkpConfigsTest, ReadsDocumentsWithoutVisualFeatures) {
  const RunConfig config =
      ReadShipped("openkp", "documents_base.json", {"init="});
  const auto options = ReadTaskOptions<Openkp>(config.task_options, "openkp");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_FALSE(options->use_visual_features_in_long);
  EXPECT_FALSE(options->use_visual_features_in_global);
}

TEST(OpenkpConfigsTest, AreAllReadByThisTest) {
  EXPECT_THAT(
      ShippedConfigs("openkp"),
      testing::UnorderedElementsAre("base.json", "large.json",
                                    "documents_base.json", "demo.json"));
}

TEST(OpenkpLossCurveTest, IsAsItWas) {
  const std::vector<double> sum = {6.44677, 6.5042,  6.26837, 6.16202, 6.11658,
                                   6.14651, 6.12913, 6.04038, 5.98196, 6.01567};
  constexpr double kTolerance = 5e-4;
  EXPECT_THAT(
      DemoLosses("openkp", "train.jsonl", "sum", {"train.learning_rate=1e-4"}),
      testing::Pointwise(testing::DoubleNear(kTolerance), sum));
}

}  // namespace
}  // namespace etc
