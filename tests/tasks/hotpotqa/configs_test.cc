// The shipped configurations: each can be read, with the published
// hyper-parameters (doc/hotpotqa.md 9: RealFormer, Table 12), and the first ten
// updates of the demo have the losses that they had when this was written.
//
// The frozen losses change with initial values, the order of the data, and any
// number in between; change them only where that is meant. Tolerance: float32
// sums in another order differ by about 1e-6 of a loss near 7, and ten updates
// multiply that; 2e-3 is well below what they differ by.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tasks/config/config.h"
#include "tests/support/shipped_config.h"

namespace etc {
namespace {

TEST(HotpotqaConfigsTest, HaveThePublishedHyperParameters) {
  for (const char* name : {"base.json", "large.json"}) {
    SCOPED_TRACE(name);
    const RunConfig config = ReadShipped("hotpotqa", name, {"init="});
    EXPECT_EQ(config.task, "hotpotqa");
    EXPECT_EQ(config.train.batch_size, 32);
    EXPECT_EQ(config.train.learning_rate, 4e-5);
    EXPECT_EQ(config.train.epochs, 5);
    EXPECT_EQ(config.train.num_train_examples, 90431);
    EXPECT_EQ(config.optimizer.weight_decay, 0.01);
    EXPECT_EQ(config.optimizer.type, "bert_adamw");
    EXPECT_EQ(config.schedule.warmup_proportion, 0.1);
    EXPECT_EQ(config.data.max_long_length, 4096);
    EXPECT_EQ(config.data.max_global_length, 256);
    EXPECT_TRUE(config.json.contains("residual_attention"));
    EXPECT_TRUE(config.model.use_hard_g2l_mask);
  }
}

TEST(HotpotqaConfigsTest, AreAllReadByThisTest) {
  EXPECT_THAT(ShippedConfigs("hotpotqa"),
              testing::UnorderedElementsAre("base.json", "large.json",
                                            "fit_sample.json", "demo.json"));
}

TEST(HotpotqaConfigsTest, FitASampleAtFullLength) {
  const RunConfig config = ReadShipped("hotpotqa", "fit_sample.json", {});
  EXPECT_EQ(config.data.max_long_length, 4096);
  EXPECT_EQ(config.data.train, config.data.dev);
}

TEST(HotpotqaLossCurveTest, IsAsItWas) {
  const std::vector<double> sum = {7.27385, 7.28597, 6.34465, 6.09817, 6.00986,
                                   5.93442, 5.67301, 5.47331, 5.20689, 5.11286};
  constexpr double kTolerance = 2e-3;
  EXPECT_THAT(DemoLosses("hotpotqa", "train.json", "sum"),
              testing::Pointwise(testing::DoubleNear(kTolerance), sum));
}

}  // namespace
}  // namespace etc
