// The shipped configurations: each can be read, with the published
// hyper-parameters, and the first ten updates of the demo have the losses that
// they had when this was written.
//
// The frozen losses change with initial values, the order of the data, and any
// number in between; change them only where that is meant. Tolerance: float32
// sums in another order differ by about 1e-6 of a loss near 1.6, and ten
// updates multiply that; 5e-4 is well below what they differ by.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tasks/config/config.h"
#include "tests/support/shipped_config.h"

namespace etc {
namespace {

TEST(WikihopConfigsTest, HaveThePublishedHyperParameters) {
  for (const char* name :
       {"base.json", "large.json", "large_residual_pretrained.json"}) {
    SCOPED_TRACE(name);
    const RunConfig config = ReadShipped("wikihop", name, {"init="});
    EXPECT_EQ(config.task, "wikihop");
    EXPECT_EQ(config.train.batch_size, 32);
    EXPECT_EQ(config.train.learning_rate, 4e-5);
    EXPECT_EQ(config.train.epochs, 15);
    EXPECT_EQ(config.train.num_train_examples, 44000);
    EXPECT_EQ(config.optimizer.weight_decay, 0.1);
    EXPECT_EQ(config.optimizer.type, "bert_adamw");
    EXPECT_EQ(config.schedule.warmup_proportion, 0.1);
    EXPECT_EQ(config.data.max_long_length, 4096);
    EXPECT_EQ(config.data.max_global_length, 430);
  }
}

TEST(WikihopConfigsTest, AreAllReadByThisTest) {
  EXPECT_THAT(ShippedConfigs("wikihop"),
              testing::UnorderedElementsAre("base.json", "large.json",
                                            "large_residual_pretrained.json",
                                            "demo.json"));
}

TEST(WikihopLossCurveTest, IsAsItWas) {
  const std::vector<double> sum = {1.60275, 1.61293, 1.61405, 1.60748, 1.61043,
                                   1.60661, 1.62136, 1.60983, 1.60962, 1.61014};
  const std::vector<double> off = {1.60547, 1.60960, 1.62066, 1.60994, 1.60873,
                                   1.60840, 1.60843, 1.60777, 1.60853, 1.60069};
  constexpr double kTolerance = 5e-4;
  EXPECT_THAT(DemoLosses("wikihop", "train.json", "sum"),
              testing::Pointwise(testing::DoubleNear(kTolerance), sum));
  EXPECT_THAT(DemoLosses("wikihop", "train.json", "off"),
              testing::Pointwise(testing::DoubleNear(kTolerance), off));
}

}  // namespace
}  // namespace etc
