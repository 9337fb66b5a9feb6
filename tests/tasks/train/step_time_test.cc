// The estimated time of an update: only its dependence on rates that are given.
// Its accuracy is measured, not tested (bench/estimate_bench.cc), as machines
// are noisy.
#include <gtest/gtest.h>

#include <optional>

#include "etc/step_cost.h"
#include "tasks/train/estimate.h"

namespace etc {
namespace {

constexpr int64_t kParameters = 1000000;
constexpr double kNever = 1e300;  // as a rate: takes no time

RunConfig Small() {
  RunConfig config;
  config.model.vocab_size = 100;
  config.model.hidden_size = 24;
  config.model.num_hidden_layers = 2;
  config.model.num_attention_heads = 2;
  config.model.intermediate_size = 48;
  config.data.max_long_length = 64;
  config.data.max_global_length = 8;
  config.train.batch_size = 4;
  return config;
}

// At one operation a second an update takes as many seconds as it has
// operations, forward and twice that backward.
TEST(StepTimeTest, OperationsTakeTheirRate) {
  const RunConfig config = Small();
  const ForwardFlops forward =
      CountForwardFlops(config.model, LargestUpdate(config));
  const StepTime time =
      EstimateStepTime(config, kParameters, HeadCost(),
                       {.linear = 1, .product = 1, .traffic = kNever});
  EXPECT_DOUBLE_EQ(time.linear,
                   3 * (forward.projections + forward.feed_forward));
  // Slower than products.
  EXPECT_GT(time.attention, 3 * forward.attention);
  EXPECT_LT(time.attention, 2 * 3 * forward.attention);
  EXPECT_NEAR(time.passes + time.parameters, 0, 1e-6);
}

// The norms and the optimizer read six numbers of a parameter and write three,
// 4 bytes each; the token table, of 100 x 24, has gradients of its own.
TEST(StepTimeTest, ParametersArePassedOnceForEachUpdate) {
  RunConfig config = Small();
  config.model.share_qkv_projections = false;
  config.train.micro_batch_size = 4;
  const MachineRates rates = {
      .linear = kNever, .product = kNever, .traffic = 1};
  const auto bytes = [&] {
    return EstimateStepTime(config, kParameters, HeadCost(), rates).parameters;
  };
  // Each stream has 6 projections of its own, and the feed-forward weights of
  // both layers in common: two reads and a write each, and a sum for these.
  const double attention = 2 * 6 * 24 * 24;
  const double feed_forward = 2 * 2 * 24 * 48;
  const double products = 4.0 * (2 * 3 * (attention + feed_forward));
  // Biases count as if they were weights of one stream.
  const double biases = 2 * (12 * 24 + 48 + 24);
  const double sums = 4.0 * 3 * (feed_forward - biases);
  const double once = bytes();
  EXPECT_DOUBLE_EQ(once,
                   4.0 * (9 * kParameters + 5 * 100 * 24) + products + sums);
  // Each further micro-batch adds gradients, two reads and a write, and passes
  // all weights again.
  config.train.micro_batch_size = 1;
  EXPECT_DOUBLE_EQ(bytes(), once + 3 * (4.0 * (3 * kParameters + 5 * 100 * 24) +
                                        products + sums));
}

// Products of the global stream read its weights, however few its tokens are.
TEST(StepTimeTest, WeightsOfAStreamAreReadOnlyIfItHasTokens) {
  RunConfig config = Small();
  const MachineRates rates = {
      .linear = kNever, .product = kNever, .traffic = 1};
  const double both =
      EstimateStepTime(config, kParameters, HeadCost(), rates).parameters;
  config.data.max_global_length = 1;
  EXPECT_EQ(EstimateStepTime(config, kParameters, HeadCost(), rates).parameters,
            both);
  config.data.max_long_length = 0;
  EXPECT_LT(EstimateStepTime(config, kParameters, HeadCost(), rates).parameters,
            both);
}

// The head's own products, and the targets: forward without a gradient, and
// forward and backward with one.
TEST(StepTimeTest, HeadsTakeTimeBesides) {
  const RunConfig config = Small();
  const MachineRates rates = {.linear = 1, .product = 1, .traffic = kNever};
  const auto seconds = [&](const HeadCost& head) {
    return EstimateStepTime(config, kParameters, head, rates);
  };
  const double without = seconds({}).total();
  EXPECT_EQ(seconds({}).head, 0);
  EXPECT_EQ(seconds({.flops = 12}).head, 12);
  EXPECT_DOUBLE_EQ(seconds({.flops = 12}).total(), without + 12);
  const StepShape targets = {.batch = 2, .long_length = 6, .global_length = 1};
  const ForwardFlops forward = CountForwardFlops(config.model, targets);
  const double head = seconds({.flops = 12, .targets = targets}).head;
  EXPECT_GT(head, 12 + 4 * forward.total());
  EXPECT_LT(head, 12 + 4 * forward.total() + 4 * forward.attention);
  EXPECT_DOUBLE_EQ(
      CountHeadFlops(config.model, {.flops = 12, .targets = targets}),
      12 + 4 * forward.total());
  EXPECT_EQ(CountHeadFlops(config.model, {}), 0);
  // A head that reads few outputs makes the encoder's own run shorter.
  EXPECT_LT(seconds({.outputs = {.longs = 0}}).linear, seconds({}).linear);
  EXPECT_EQ(seconds({.outputs = {.longs = 0}}).head, 0);
}

TEST(StepTimeTest, RecomputedLayersTakeTimeAgain) {
  RunConfig config = Small();
  const MachineRates rates = {.linear = 1, .product = 1, .traffic = 1};
  const StepTime without =
      EstimateStepTime(config, kParameters, HeadCost(), rates);
  config.model.grad_checkpointing_period = 1;
  const StepTime with =
      EstimateStepTime(config, kParameters, HeadCost(), rates);
  EXPECT_DOUBLE_EQ(with.linear, without.linear * 3.5 / 3);
  EXPECT_DOUBLE_EQ(with.attention, without.attention * 3.5 / 3);
  // Weights are read once more in the first of two layers.
  EXPECT_GT(with.parameters, without.parameters);
}

TEST(StepTimeTest, RecomputedScoresTakeTimeOfAttention) {
  RunConfig config = Small();
  config.model.residual_attention = "sum";
  config.train.score_storage = "recompute";
  const double flops = CountRecomputedScoreFlops(
      config.model, LargestUpdate(config), StepOptionsOf(config));
  const MachineRates rates = {.linear = 1, .product = 1, .traffic = 1};
  const DeviceRates device = {
      .linear = 2, .attention = 4, .passes = 8, .copies = kNever};
  const StepTime with =
      EstimateStepTime(config, kParameters, HeadCost(), rates);
  const StepTime on_device =
      EstimateStepTime(config, kParameters, HeadCost(), device);
  config.train.score_storage = "reverse";
  const StepTime without =
      EstimateStepTime(config, kParameters, HeadCost(), rates);
  EXPECT_GT(with.attention, without.attention + flops);
  EXPECT_GT(with.passes, without.passes);
  EXPECT_EQ(with.linear, without.linear);
  EXPECT_DOUBLE_EQ(
      on_device.attention,
      EstimateStepTime(config, kParameters, HeadCost(), device).attention +
          flops / 4);
}

// On a device attention has a rate of its own, and rounding is in that of
// linear layers.
TEST(StepTimeTest, OperationsTakeTheRateOfADevice) {
  RunConfig config = Small();
  const DeviceRates rates = {
      .linear = 2, .attention = 4, .passes = 8, .copies = kNever};
  const auto time = [&](const HeadCost& head) {
    return EstimateStepTime(config, kParameters, head, rates);
  };
  const ForwardFlops forward =
      CountForwardFlops(config.model, LargestUpdate(config));
  const StepTime without = time({});
  EXPECT_DOUBLE_EQ(without.linear,
                   3 * (forward.projections + forward.feed_forward) / 2);
  EXPECT_DOUBLE_EQ(without.attention, 3 * forward.attention / 4);
  EXPECT_DOUBLE_EQ(
      without.passes,
      CountTrainingTraffic(config.model, LargestUpdate(config), {}) / 8);
  EXPECT_NEAR(without.parameters, 0, 1e-6);
  EXPECT_EQ(without.head, 0);
  EXPECT_EQ(time({.flops = 12}).head, 6);
  const StepShape targets = {.batch = 2, .long_length = 6, .global_length = 1};
  const ForwardFlops of_targets = CountForwardFlops(config.model, targets);
  EXPECT_DOUBLE_EQ(
      time({.targets = targets}).head,
      4 * ((of_targets.projections + of_targets.feed_forward) / 2 +
           of_targets.attention / 4 +
           CountTrainingTraffic(config.model, targets, {}) / 3 / 8));
  // Carried scores are attention's.
  config.model.residual_attention = "sum";
  config.train.precision = "bf16";
  EXPECT_EQ(time({}).total(), without.total());
  config.model.grad_checkpointing_period = 1;
  EXPECT_DOUBLE_EQ(time({}).linear, without.linear * 3.5 / 3);
  EXPECT_DOUBLE_EQ(time({}).attention, without.attention * 3.5 / 3);
}

// Two layers by what one takes, all else by its bytes: 40 numbers of each, and
// the gradients of the token table and those of further micro-batches.
TEST(StepTimeTest, ParametersOfADeviceTakeLaunchesAndBytes) {
  RunConfig config = Small();
  config.train.micro_batch_size = 4;
  const DeviceRates rates = {.linear = kNever,
                             .attention = kNever,
                             .passes = kNever,
                             .copies = 2,
                             .layer_update = 7,
                             .layer_parameters = 1000};
  const auto seconds = [&](int64_t parameters) {
    return EstimateStepTime(config, parameters, HeadCost(), rates).parameters;
  };
  const double table = 4.0 * 5 * 100 * 24 / 2;
  EXPECT_DOUBLE_EQ(seconds(2000), 2 * 7 + table);
  EXPECT_DOUBLE_EQ(seconds(2500), 2 * 7 + table + 4.0 * 40 * 500 / 2);
  config.train.micro_batch_size = 2;
  EXPECT_DOUBLE_EQ(seconds(2500),
                   2 * 7 + 2 * table + 4.0 * (40 * 500 + 3 * 2500) / 2);
}

TEST(StepTimeTest, UpdatesFollowFromTheConfigurationWhereTheyCan) {
  RunConfig config = Small();
  EXPECT_EQ(UpdatesWithoutData(config), std::nullopt);
  config.train.epochs = 3;
  config.train.num_train_examples = 10;
  EXPECT_EQ(UpdatesWithoutData(config), 7);  // 10 / 4 * 3
  config.train.max_examples = 4;
  EXPECT_EQ(UpdatesWithoutData(config), std::nullopt);
  config.train.steps = 5;
  EXPECT_EQ(UpdatesWithoutData(config), 5);
}

TEST(StepTimeTest, MeasuresRatesOfThisMachine) {
  const MachineRates rates = MeasureRates(Small());
  EXPECT_GT(rates.linear, 0);
  EXPECT_GT(rates.product, 0);
  EXPECT_GT(rates.traffic, 0);
  RunConfig bert = Small();
  bert.model.has_long_tokens = false;
  bert.data.max_long_length = 0;
  EXPECT_GT(MeasureRates(bert).linear, 0);
}

}  // namespace
}  // namespace etc
