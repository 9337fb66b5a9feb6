// Operations by formula against sums worked out by hand. Memory is measured in
// tests/tasks/train/step_memory_test.cc; here only its dependence on sizes and
// options.
#include "etc/step_cost.h"

#include <gtest/gtest.h>

namespace etc {
namespace {

// Every size a different number.
EtcConfig Small() {
  EtcConfig config;
  config.vocab_size = 100;
  config.hidden_size = 6;
  config.num_hidden_layers = 3;
  config.num_attention_heads = 2;
  config.att_size_per_head = 5;  // A = 10
  config.local_radius = 1;       // W = 3
  config.relative_pos_max_distance = 1;
  config.relative_vocab_size = 7;
  config.intermediate_size = 11;
  return config;
}

constexpr StepShape kShape = {
    .batch = 2, .long_length = 13, .global_length = 4};

ActivationBytes Estimate(const EtcConfig& config) {
  return EstimateActivations(config, kShape, {});
}

// 2 * 17 = 34 tokens, 3 layers, 2 operations a multiplication.
TEST(StepCostTest, CountsTheOperationsOfForward) {
  const ForwardFlops flops = CountForwardFlops(Small(), kShape);
  // Queries, keys, values, contexts; unshared also keys and values for the
  // other stream.
  EXPECT_EQ(flops.projections, 3 * 2 * 34 * 4 * (6 * 10));
  EtcConfig unshared = Small();
  unshared.share_qkv_projections = false;
  EXPECT_EQ(CountForwardFlops(unshared, kShape).projections,
            3 * 2 * 34 * 6 * (6 * 10));
  // Pairs: 2 * 13 * (3 + 4) of long and 2 * 4 * (13 + 4) of global queries,
  // each a score and a value; 7 relative ids for each query.
  EXPECT_EQ(flops.attention, 3 * 2 * (2 * (182 + 136) * 10 + 34 * 7 * 10));
  EXPECT_EQ(flops.feed_forward, 3 * 2 * 34 * (2 * 6 * 11));
  EXPECT_EQ(flops.embedding, 0);
  EXPECT_EQ(flops.total(),
            flops.projections + flops.attention + flops.feed_forward);
}

// Outputs of the last layer for 2 * 5 long tokens alone: all keys and values,
// but queries, scores and everything behind attention of these tokens only.
TEST(StepCostTest, CountsOfTheLastLayerWhatIsWanted) {
  StepShape shape = kShape;
  shape.outputs = {.longs = 5, .globals = 0};
  const ForwardFlops flops = CountForwardFlops(Small(), shape);
  EXPECT_EQ(flops.projections, 2 * (2 * 34 * 4 + 34 * 2 + 10 + 10) * (6 * 10));
  EXPECT_EQ(flops.attention, 2 * 2 * (2 * (182 + 136) * 10 + 34 * 7 * 10) +
                                 2 * (2 * 10 * 7 * 10 + 10 * 7 * 10));
  EXPECT_EQ(flops.feed_forward, (2 * 34 + 10) * 2 * (2 * 6 * 11));
  EXPECT_LT(CountTrainingTraffic(Small(), shape, {}),
            CountTrainingTraffic(Small(), kShape, {}));
  shape.outputs = {.longs = 13, .globals = 4};
  EXPECT_EQ(CountTrainingFlops(Small(), shape),
            CountTrainingFlops(Small(), kShape));
}

TEST(StepCostTest, CountsTheProjectionOfTokenVectors) {
  EtcConfig config = Small();
  config.embedding_size = 9;
  EXPECT_EQ(CountForwardFlops(config, kShape).embedding, 2 * 34 * 9 * 6);
}

TEST(StepCostTest, CountsBackwardTwiceAndRecomputedLayersOnceMore) {
  EtcConfig config = Small();
  const double forward = CountForwardFlops(config, kShape).total();
  EXPECT_EQ(CountTrainingFlops(config, kShape), 3 * forward);
  // Chains {0}, {1, 2}: one of three layers is recomputed (doc/model.md 4.4).
  config.grad_checkpointing_period = 2;
  EXPECT_DOUBLE_EQ(CountTrainingFlops(config, kShape),
                   3 * forward + forward / 3);
}

// One forward pass more, and contexts, half of one, unless files keep them.
TEST(StepCostTest, CountsWhatLayersInSlicesComputeAgain) {
  EXPECT_EQ(LayerPasses(Small()), 3);
  EXPECT_EQ(LayerPasses(Small(), {.slices = LayerSlices{}}), 4.5);
  const StepOptions in_files = {.slices = LayerSlices{.directory = "/files"}};
  EXPECT_EQ(LayerPasses(Small(), in_files), 4);
  EXPECT_EQ(CountTrainingFlops(Small(), kShape, in_files),
            4 * CountForwardFlops(Small(), kShape).total());
}

// Scores of two layers are computed again before the backward pass of layer 2,
// and those of one before that of layer 1. A layer has 318 pairs, and 7
// relative ids of each of 34 tokens.
TEST(StepCostTest, CountsTheScoresThatAreComputedAgain) {
  EtcConfig config = Small();
  const StepOptions again = {.storage = ScoreStorage::kRecompute};
  EXPECT_EQ(CountRecomputedScoreFlops(config, kShape, again), 0);
  config.residual_attention = "sum";
  const double of_layer = 2 * (318 + 34 * 7) * 10;
  EXPECT_EQ(CountRecomputedScoreFlops(config, kShape, again), 3 * of_layer);
  EXPECT_EQ(CountTrainingFlops(config, kShape, again),
            CountTrainingFlops(config, kShape) + 3 * of_layer);
  // Scores of two heads are read and written.
  EXPECT_EQ(CountTrainingTraffic(config, kShape, again),
            CountTrainingTraffic(config, kShape, {}) + 3 * 2 * 4 * 2 * 318);
  EXPECT_EQ(CountRecomputedScoreFlops(config, kShape,
                                      {.storage = ScoreStorage::kStore}),
            0);
  // Chains {0}, {1, 2}.
  config.grad_checkpointing_period = 2;
  EXPECT_EQ(CountRecomputedScoreFlops(config, kShape, again), of_layer);
}

TEST(StepCostTest, ResidualScoresCostOnlyWhenOn) {
  EtcConfig config = Small();
  EXPECT_EQ(Estimate(config).residual_scores, 0);
  config.residual_attention = "mean";
  // l2l, l2g, g2g and g2l of one layer, 2 heads, 4 bytes.
  const double one_layer = 4 * 2 * 2 * (13 * (3 + 4) + 4 * (13 + 4));
  // Scores and their gradients, whatever the depth; or scores of 3 layers.
  EXPECT_EQ(Estimate(config).residual_scores, 2 * one_layer);
  EXPECT_EQ(
      EstimateActivations(config, kShape, {.storage = ScoreStorage::kStore})
          .residual_scores,
      4 * one_layer);
  for (const char* mode : {"sum", "decay", "gate"}) {
    config.residual_attention = mode;
    EXPECT_EQ(Estimate(config).residual_scores, 2 * one_layer) << mode;
  }
}

// A head that reads one global token of each example leaves keys and values of
// 26 long tokens, for 8 global ones queries, keys, values, contexts and the
// softmax, and for 2 of these all behind attention.
TEST(StepCostTest, KeepsOfTheLastLayerWhatIsWanted) {
  StepShape shape = kShape;
  shape.outputs = {.longs = 0, .globals = 1};
  EtcConfig config = Small();
  const auto estimate = [&] { return EstimateActivations(config, shape, {}); };
  constexpr double kAttention = 4 * (4 * 10 + 2 * 2);
  constexpr double kBehind = 4 * (2 * (6 + 2) + 2 * 6 + 11);
  EXPECT_EQ(Estimate(config).saved - estimate().saved,
            34 * (kAttention + kBehind) -
                (26 * 4 * 2 * 10 + 8 * kAttention + 2 * kBehind));
  // Scores of long queries of the first layer only, which have no gradient.
  config.residual_attention = "sum";
  config.num_hidden_layers = 2;
  EXPECT_EQ(estimate().residual_scores,
            4 * 2 * 2 * (13 * (3 + 4) + 2 * 4 * (13 + 4)));
  // Where the layer below the last is in slices the input of that is gone.
  const StepOptions slices = {.slices = LayerSlices{}};
  EXPECT_EQ(EstimateActivations(config, shape, slices).residual_scores,
            estimate().residual_scores);
  EXPECT_EQ(EstimateActivations(config, kShape, slices).saved -
                EstimateActivations(config, shape, slices).saved,
            34 * 4 * 6);
  shape.outputs = {.longs = 13, .globals = 4};
  EXPECT_EQ(estimate().total(), Estimate(config).total());
}

// 34 tokens: a stream of 6, queries, keys, values and contexts of 10 and two
// statistics of 2 heads; in bfloat16 copies of the input and of contexts.
TEST(StepCostTest, CountsWhatEvaluationsHold) {
  EtcConfig config = Small();
  const auto forward = [&](const StepOptions& options) {
    return EstimateForwardActivations(config, kShape, options);
  };
  EXPECT_EQ(forward({}).saved, 0);
  EXPECT_EQ(forward({}).working, 34 * 4 * (6 + 4 * 10 + 2 * 2));
  EXPECT_EQ(forward({.precision = LinearPrecision::kBfloat16}).working,
            34 * (4 * (6 + 4 * 10 + 2 * 2) + 2 * 6));
  EXPECT_EQ(forward({}).attention_inputs, Estimate(config).attention_inputs);
  config.grad_checkpointing_period = 1;
  config.num_hidden_layers = 12;
  EXPECT_EQ(forward({.slices = LayerSlices{}}).total(), forward({}).total());
  EXPECT_EQ(forward({}).residual_scores, 0);
  config.residual_attention = "sum";
  // l2l, l2g, g2g and g2l of one layer, 2 heads, 4 bytes.
  const double one_layer = 4 * 2 * 2 * (13 * (3 + 4) + 4 * (13 + 4));
  EXPECT_EQ(forward({}).residual_scores, one_layer);
  EXPECT_EQ(forward({.storage = ScoreStorage::kStore}).residual_scores,
            2 * one_layer);
  config.sublayer = "pre_norm";
  EXPECT_EQ(forward({}).working, 34 * 4 * (2 * 6 + 4 * 10 + 2 * 2));
  // The activation of a wide block counts, in the longer stream.
  config.intermediate_size = 1000;
  EXPECT_EQ(forward({}).working, 4 * (34 * 5 * 6 + 26 * 2 * 1000));
}

TEST(StepCostTest, GradientCheckpointingSavesMemory) {
  EtcConfig config = Small();
  config.num_hidden_layers = 12;
  const double without = Estimate(config).saved;
  config.grad_checkpointing_period = 1;
  const double every_layer = Estimate(config).saved;
  config.grad_checkpointing_period = 6;
  const double every_sixth = Estimate(config).saved;
  EXPECT_LT(every_layer, every_sixth);
  EXPECT_LT(every_sixth, without);
}

// Memory that LibTorch's operations keep of 34 tokens beside the CPU's kernels:
// the activation, 11 wide, and a byte of each of two dropped changes of 6.
// Without fused attention there are no statistics of two heads, but masks and
// ids of 2 * (13 * (3 + 4) + 4 * (13 + 4)) pairs.
TEST(StepCostTest, DevicesKeepMoreActivations) {
  const auto estimate = [](StepBackend backend) {
    return EstimateActivations(Small(), kShape, {.backend = backend});
  };
  const ActivationBytes on_cpu = estimate(StepBackend::kCpu);
  const ActivationBytes kernels = estimate(StepBackend::kCudaKernels);
  const ActivationBytes operations = estimate(StepBackend::kCudaOperations);
  EXPECT_EQ(kernels.saved - on_cpu.saved, 3 * 34 * (4 * 11 + 2 * 6));
  EXPECT_EQ(kernels.saved - operations.saved, 3 * 34 * 4 * 2 * 2);
  EXPECT_EQ(kernels.attention_inputs, on_cpu.attention_inputs);
  EXPECT_EQ(operations.attention_inputs, 318 * 9);
  EXPECT_GT(operations.working, kernels.working);
}

// 34 tokens, 3 layers: two outputs of norms of 6 and an activation's input of
// 11 in float32, or these and a context of 10 rounded.
TEST(StepCostTest, RoundedOperandsAreCopies) {
  const double in_float = Estimate(Small()).saved;
  const double rounded =
      EstimateActivations(Small(), kShape,
                          {.precision = LinearPrecision::kBfloat16})
          .saved;
  EXPECT_EQ(rounded - in_float,
            34 * 3 * (2 * (2 * 6 + 10 + 11) - 4 * (2 * 6 + 11)));
}

TEST(StepCostTest, CountsWhatIsReadAndWrittenBesideProducts) {
  EtcConfig config = Small();
  // Shared projections: three products of one input.
  const double without = 4.0 * 3 * 34 * (25 * 6 + 7 * 10 + 6 * 11);
  EXPECT_EQ(CountTrainingTraffic(config, kShape, {}), without);
  // One gradient for the three products; their bias gradients, and the
  // activation, while they are rounded: two inputs of 6 and one of 10, three
  // gradients of 10 and two of 6.
  EXPECT_EQ(
      CountTrainingTraffic(config, kShape,
                           {.precision = LinearPrecision::kBfloat16}),
      4.0 * 3 * 34 *
          (19 * 6 + 4 * 10 + 2.5 * 11 + 1.5 * (2 * 6 + 10 + 3 * 10 + 2 * 6)));
  config.residual_attention = "sum";
  const double scores = 2 * 2 * (13 * (3 + 4) + 4 * (13 + 4));
  EXPECT_EQ(CountTrainingTraffic(config, kShape, {}),
            without + 4 * 3 * 6 * scores);
}

// 34 tokens, 3 layers, 2 residual connections, 4 bytes. An alpha keeps the
// change, a LayerNorm its input with mean and deviation; an omega also the
// stream, where it is no operand of a product in float32.
TEST(StepCostTest, KnowsWhatSublayersKeep) {
  const auto saved = [](const char* sublayer, LinearPrecision precision) {
    EtcConfig config = Small();
    config.sublayer = sublayer;
    return EstimateActivations(config, kShape, {.precision = precision}).saved;
  };
  const auto of_numbers = [](double numbers) {
    return 34 * 3 * 2 * 4 * numbers;
  };
  using enum LinearPrecision;
  EXPECT_EQ(saved("pre_norm", kFloat32), saved("post_norm", kFloat32));
  EXPECT_EQ(saved("admin", kFloat32), saved("post_norm", kFloat32));
  EXPECT_EQ(saved("post_norm", kFloat32) - saved("rezero", kFloat32),
            of_numbers(2));
  EXPECT_EQ(saved("admin", kBfloat16) - saved("post_norm", kBfloat16),
            of_numbers(6));
  const auto traffic = [](const char* sublayer) {
    EtcConfig config = Small();
    config.sublayer = sublayer;
    return CountTrainingTraffic(config, kShape, {});
  };
  EXPECT_EQ(traffic("rezero") - traffic("post_norm"), of_numbers(2 * 6));
  EXPECT_EQ(traffic("admin") - traffic("post_norm"), of_numbers(5 * 6));
}

}  // namespace
}  // namespace etc
