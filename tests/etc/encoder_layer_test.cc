// The layers around attention: activations (doc/model.md 13.2, last line), the
// residual block's two orders (doc/model.md 12.6, 12.7), initial values
// (doc/model.md 4.3), and streams of different sizes, blocked = reference
// (doc/model.md 12.6).

#include "etc/encoder_layer.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>

#include "attention/pattern_builders.h"
#include "base/initializers.h"
#include "tests/support/gradient_check.h"
#include "tests/support/tensor_matchers.h"

namespace etc {
namespace {

TEST(ActivationTest, GeluIsTheTanhForm) {
  const torch::Tensor x =
      torch::tensor({-3., -1., -0.5, 0.5, 1., 2., 3.}, torch::kFloat64);
  EXPECT_TRUE(
      IsClose(Activate(ActivationFromName("gelu"), x),
              torch::tensor({-0.00363739, -0.15880801, -0.15428599, 0.34571401,
                             0.84119199, 1.95459769, 2.99636261},
                            torch::kFloat64),
              1e-8));
}

// x Phi(x), with Phi(1) = 0.8413447461 and Phi(-2) = 0.0227501319.
TEST(ActivationTest, GeluErfIsTheExactForm) {
  const torch::Tensor x = torch::tensor({-2., 0., 1.}, torch::kFloat64);
  EXPECT_TRUE(IsClose(
      Activate(ActivationFromName("gelu_erf"), x),
      torch::tensor({-2 * 0.0227501319, 0., 0.8413447461}, torch::kFloat64),
      1e-9));
}

// Float32 in parts: the last is not full, and none is a multiple of a vector at
// the borders between threads.
TEST(ActivationTest, GivesTheSameAtAnyNumberOfThreads) {
  const int threads_before = at::get_num_threads();
  torch::manual_seed(1);
  const torch::Tensor values = torch::randn({3, 33337});
  const torch::Tensor gradient = torch::randn({3, 33337});
  for (const char* name : {"gelu", "gelu_erf", "tanh", "relu"}) {
    SCOPED_TRACE(name);
    const auto run = [&](torch::ScalarType type, int threads) {
      at::set_num_threads(threads);
      const torch::Tensor x = values.to(type).detach().requires_grad_(true);
      const torch::Tensor y = Activate(ActivationFromName(name), x);
      return std::pair(y.detach(),
                       torch::autograd::grad({y}, {x}, {gradient.to(type)})[0]);
    };
    const auto exact = run(torch::kFloat64, 1);
    const auto first = run(torch::kFloat32, 1);
    EXPECT_TRUE(IsClose(first.first, exact.first, 2e-6));
    EXPECT_TRUE(IsClose(first.second, exact.second, 5e-6));
    for (const int threads : {2, 3, 4, 5}) {
      const auto again = run(torch::kFloat32, threads);
      EXPECT_TRUE(again.first.equal(first.first)) << threads;
      EXPECT_TRUE(again.second.equal(first.second)) << threads;
    }
  }
  at::set_num_threads(threads_before);
}

TEST(ActivationTest, TakesNamesInAnyCase) {
  EXPECT_EQ(ActivationFromName("ReLU"), Activation::kRelu);
  EXPECT_EQ(ActivationFromName("TANH"), Activation::kTanh);
  EXPECT_EQ(ActivationFromName(""), Activation::kLinear);
  EXPECT_EQ(ActivationFromName("linear"), Activation::kLinear);
  EXPECT_THROW(ActivationFromName("swish"), c10::Error);
}

// A block of 2 -> 2 -> 2 with kernels of the identity, no bias, relu.
FeedForwardBlock IdentityBlock(bool pre_layer_norm) {
  FeedForwardBlock block(
      2, 2,
      EtcEncoderLayerOptions{
          .activation = Activation::kRelu,
          .sublayer = pre_layer_norm ? Sublayer::kPreNorm : Sublayer::kPostNorm,
          .hidden_dropout = 0.0});
  block->to(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  auto parameters = block->named_parameters();
  parameters["intermediate.weight"].copy_(torch::eye(2));
  parameters["output.weight"].copy_(torch::eye(2));
  return block;
}

torch::Tensor Normalized(const torch::Tensor& x) {
  const torch::Tensor mean = x.mean(-1, true);
  const torch::Tensor centred = x - mean;
  return centred / (centred.square().mean(-1, true) + 1e-12).sqrt();
}

TEST(FeedForwardBlockTest, NormalisesAfterOrBefore) {
  const torch::Tensor x =
      torch::tensor({1., -1., 0.5, -1.5}, torch::kFloat64).reshape({1, 2, 2});
  EXPECT_TRUE(IsClose(IdentityBlock(false)->forward(x),
                      Normalized(x + torch::relu(x)), 1e-12));
  EXPECT_TRUE(IsClose(IdentityBlock(true)->forward(x),
                      x + torch::relu(Normalized(x)), 1e-12));
}

TEST(FeedForwardBlockTest, HasTheRightGradients) {
  torch::manual_seed(2);
  EtcEncoderLayerOptions options{.hidden_dropout = 0.0};
  options.attention.initializer_range = 0.5;
  FeedForwardBlock block(3, 5, options);
  block->to(torch::kFloat64);
  const torch::Tensor x =
      torch::randn({1, 4, 3}, torch::kFloat64).requires_grad_(true);
  std::vector<std::pair<std::string, torch::Tensor>> variables = {{"x", x}};
  for (const auto& parameter : block->named_parameters()) {
    variables.emplace_back(parameter.key(), parameter.value());
  }
  EXPECT_TRUE(GradientsMatchDifferences(
      [&] { return block->forward(x).sin().sum(); }, variables, 1e-6));
}

TEST(InitializersTest, CutTheNormalAtTwoDeviations) {
  torch::manual_seed(3);
  torch::Tensor tensor = torch::empty({200, 200});
  TruncatedNormal_(tensor, 0.02);
  EXPECT_LE(tensor.abs().max().item<double>(), 0.04);
  EXPECT_NEAR(tensor.mean().item<double>(), 0.0, 1e-3);
  // Deviation of a normal distribution cut off at 2 sigma: 0.8796 sigma.
  EXPECT_NEAR(tensor.std().item<double>(), 0.8796 * 0.02, 2e-4);
}

TEST(EncoderLayerTest, StartsAsTheSpecSays) {
  torch::manual_seed(4);
  EtcEncoderLayer layer(
      EtcEncoderLayerOptions{.attention = {.long_hidden_size = 64,
                                           .global_hidden_size = 64,
                                           .num_heads = 4,
                                           .head_size = 16}});
  for (const auto& parameter : layer->named_parameters()) {
    const std::string& name = parameter.key();
    const torch::Tensor& value = parameter.value();
    const double deviation = value.std().item<double>();
    if (name.find("norm.weight") != std::string::npos) {
      EXPECT_TRUE(value.eq(1).all().item<bool>()) << name;
    } else if (name.find("bias") != std::string::npos) {
      EXPECT_TRUE(value.eq(0).all().item<bool>()) << name;
    } else if (name.find("relative.embedding") != std::string::npos) {
      EXPECT_NEAR(deviation, 0.8796 * 0.5, 0.02) << name;
    } else {
      EXPECT_NEAR(deviation, 0.8796 * 0.02, 0.001) << name;
    }
  }
}

// doc/pretraining.md 6.2: the two kernels that write into the residual stream.
TEST(EncoderLayerTest, ScalesWhatWritesIntoTheStreamByDepth) {
  EtcConfig config;
  config.vocab_size = 3;
  config.num_hidden_layers = 18;
  config.hidden_size = 64;
  config.num_attention_heads = 4;
  config.intermediate_size = 128;
  for (const bool scaled : {false, true}) {
    config.depth_scaled_initializer = scaled;
    torch::manual_seed(4);
    EtcEncoderLayer layer(EncoderLayerOptions(config));
    for (const auto& parameter : layer->named_parameters()) {
      const std::string& name = parameter.key();
      const bool is_kernel = name.find("norm") == std::string::npos &&
                             name.find(".weight") != std::string::npos;
      if (is_kernel) {
        const bool writes = name.find("output.weight") != std::string::npos;
        const double expected =
            0.8796 * 0.02 / (scaled && writes ? 6.0 : 1.0);  // sqrt(2 * 18)
        EXPECT_NEAR(parameter->std().item<double>(), expected, 0.05 * expected)
            << name;
      }
    }
  }
}

EtcEncoderLayerOptions TwoSizes(bool pre_layer_norm) {
  return {.attention = {.long_hidden_size = 10,
                        .global_hidden_size = 15,
                        .num_heads = 5,
                        .head_size = 2,
                        .local_radius = 7,
                        .relative_vocab_size = 21,
                        .share_qkv_projections = false,
                        .dropout = 0.0,
                        .initializer_range = 0.3},
          .long_intermediate_size = 20,
          .global_intermediate_size = 30,
          .share_feed_forward = false,
          .sublayer = pre_layer_norm ? Sublayer::kPreNorm : Sublayer::kPostNorm,
          .hidden_dropout = 0.0};
}

TEST(EncoderLayerTest, BlockedMatchesReferenceForStreamsOfTwoSizes) {
  torch::manual_seed(5);
  const AttentionInputs attention(
      std::vector{UnrestrictedPattern(64, 16, 7, 8)});
  for (const bool pre_layer_norm : {false, true}) {
    std::vector<EtcEncoderLayer> layers;
    for (int i = 0; i < 2; ++i) {
      layers.emplace_back(TwoSizes(pre_layer_norm));
      layers.back()->to(torch::kFloat64);
    }
    const EncoderState start = {
        .long_states = torch::randn({1, 64, 10}, torch::kFloat64),
        .global_states = torch::randn({1, 16, 15}, torch::kFloat64)};
    const auto run = [&](AttentionImplementation implementation) {
      EncoderState state = start;
      for (int i = 0; i < 2; ++i) {
        layers[i]->attention()->set_implementation(implementation);
        state = layers[i]->forward(state, attention,
                                   {.mode = ResidualAttention::kSum});
      }
      return state;
    };
    const EncoderState reference = run(AttentionImplementation::kReference);
    const EncoderState blocked = run(AttentionImplementation::kBlocked);
    EXPECT_TRUE(IsClose(blocked.long_states, reference.long_states, 1e-10));
    EXPECT_TRUE(IsClose(blocked.global_states, reference.global_states, 1e-10));
  }
}

TEST(EncoderLayerTest, RejectsSharingBetweenSizes) {
  EtcEncoderLayerOptions options = TwoSizes(false);
  options.share_feed_forward = true;
  EXPECT_THROW(EtcEncoderLayer{options}, c10::Error);
  options = TwoSizes(false);
  options.attention.share_output_projection = true;
  EXPECT_THROW(EtcEncoderLayer{options}, c10::Error);
}

}  // namespace
}  // namespace etc
