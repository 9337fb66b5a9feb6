// Hidden dropout (doc/model.md 0: kept with probability 1 - p, kept values
// divided by that) at each of its places: behind the LayerNorm of the
// embeddings, behind attention and at the end of a feed-forward block
// (doc/model.md 2, 4.1), of both streams and both orders of LayerNorm. The
// factor of each element there is laid open: embeddings in training are divided
// by those outside of it; a layer is set so that everything that does not pass
// the place at hand is 0, and everything that does is 1. Behind a final
// LayerNorm only its sign is left.
//
// 8192 elements and p = 0.2: the share that is dropped has a deviation of
// 0.0044, so 0.025 is exceeded once in 10^8 seeds.

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <functional>
#include <string>
#include <utility>

#include "attention/pattern_builders.h"
#include "etc/config.h"
#include "etc/embedding.h"
#include "etc/encoder_layer.h"
#include "etc/model.h"
#include "tests/support/tensor_matchers.h"

namespace etc {
namespace {

constexpr double kProbability = 0.2;
constexpr double kKept = 1.0 / (1.0 - kProbability);
constexpr int64_t kBatch = 2;
constexpr int64_t kLength = 64;  // of both streams
constexpr int64_t kHidden = 64;

// The factors of the elements at one place, [B, length, H].
struct Place {
  std::string name;
  std::function<torch::Tensor(bool training)> factors;
};

torch::Tensor EmbeddingFactors(bool of_long, bool training) {
  EtcConfig config;
  config.vocab_size = 50;
  config.hidden_size = kHidden;
  config.hidden_dropout_prob = kProbability;
  config.num_attention_heads = 4;
  EtcEmbedding embedding(config);
  const auto ids = [&] {
    return torch::randint(config.vocab_size, {kBatch, kLength}, torch::kInt64);
  };
  const EtcInput input = {.token_ids = ids(), .global_token_ids = ids()};
  const auto run = [&](bool with_dropout) {
    embedding->train(with_dropout);
    const EmbeddedInput output = embedding->forward(input);
    return of_long ? output.long_input : output.global_input;
  };
  const torch::Tensor whole = run(false);
  return run(training) / whole;
}

struct LayerPlace {
  bool of_attention, of_long, pre_layer_norm;
};

// The biases of projections are what blocks add; their weights are 0.
torch::Tensor LayerFactors(const LayerPlace& place, bool training) {
  EtcEncoderLayer layer(EtcEncoderLayerOptions{
      .attention = {.long_hidden_size = kHidden,
                    .global_hidden_size = kHidden,
                    .num_heads = 4,
                    .head_size = kHidden / 4,
                    .local_radius = 4,
                    .dropout = 0.0},
      .long_intermediate_size = 2 * kHidden,
      .global_intermediate_size = 2 * kHidden,
      .share_feed_forward = false,
      .sublayer =
          place.pre_layer_norm ? Sublayer::kPreNorm : Sublayer::kPostNorm,
      .hidden_dropout = kProbability});
  layer->train(training);
  {
    const torch::NoGradGuard no_grad;
    auto parameters = layer->named_parameters();
    const std::string stream = place.of_long ? "long_" : "global_";
    for (const std::string other : {"long_", "global_"}) {
      for (const std::string& output :
           {"attention." + other + "output", other + "feed_forward.output"}) {
        parameters[output + ".weight"].zero_();
        parameters[output + ".bias"].zero_();
      }
    }
    parameters[place.of_attention ? "attention." + stream + "output.bias"
                                  : stream + "feed_forward.output.bias"]
        .fill_(1.0);
  }
  const torch::Tensor nothing = torch::zeros({kBatch, kLength, kHidden});
  const EncoderState output = layer->forward(
      {.long_states = nothing, .global_states = nothing},
      AttentionInputs(std::vector(
          kBatch, UnrestrictedPattern(kLength, kLength, /*local_radius=*/4,
                                      /*relative_pos_max_distance=*/0))));
  const torch::Tensor result =
      place.of_long ? output.long_states : output.global_states;
  if (place.pre_layer_norm) {
    return result;
  }
  return torch::where(
      result.lt(0), torch::zeros_like(result),
      torch::where(result.gt(0), torch::full_like(result, kKept),
                   torch::ones_like(result)));
}

std::vector<Place> Places() {
  std::vector<Place> places;
  for (const bool of_long : {true, false}) {
    const std::string stream = of_long ? "Long" : "Global";
    places.push_back({stream + "Embedding", [=](bool training) {
                        return EmbeddingFactors(of_long, training);
                      }});
    for (const bool of_attention : {true, false}) {
      for (const bool pre : {true, false}) {
        places.push_back({stream +
                              (of_attention ? "Attention" : "FeedForward") +
                              (pre ? "BeforeNoNorm" : "BeforeNorm"),
                          [=](bool training) {
                            return LayerFactors({.of_attention = of_attention,
                                                 .of_long = of_long,
                                                 .pre_layer_norm = pre},
                                                training);
                          }});
      }
    }
  }
  return places;
}

class HiddenDropoutTest : public testing::TestWithParam<Place> {
 protected:
  static torch::Tensor Factors(uint64_t seed) {
    torch::manual_seed(seed);
    return GetParam().factors(/*training=*/true).detach();
  }
};

INSTANTIATE_TEST_SUITE_P(Places, HiddenDropoutTest, testing::ValuesIn(Places()),
                         [](const auto& place) { return place.param.name; });

TEST_P(HiddenDropoutTest, DropsItsShareAndScalesTheRest) {
  const torch::Tensor factors = Factors(2);
  const torch::Tensor is_dropped = factors.eq(0);
  EXPECT_NEAR(is_dropped.to(torch::kFloat64).mean().item<double>(),
              kProbability, 0.025);
  EXPECT_TRUE(IsClose(factors.masked_fill(is_dropped, kKept),
                      torch::full_like(factors, kKept), 1e-5));
  // Each element by itself, not rows, columns or examples as a whole.
  const torch::Tensor rows = is_dropped.to(torch::kFloat64).flatten(0, 1);
  for (const int64_t axis : {0, 1}) {
    const torch::Tensor shares = rows.mean(axis);
    EXPECT_GT(shares.min().item<double>(), 0.0);
    EXPECT_LT(shares.max().item<double>(), 0.6);
  }
  EXPECT_FALSE(torch::equal(is_dropped[0], is_dropped[1]));
}

TEST_P(HiddenDropoutTest, IsOffOutsideOfTraining) {
  const torch::Tensor factors = GetParam().factors(/*training=*/false);
  EXPECT_TRUE(IsClose(factors, torch::ones_like(factors), 1e-6));
}

TEST_P(HiddenDropoutTest, FollowsFromTheSeed) {
  EXPECT_TRUE(torch::equal(Factors(3), Factors(3)));
  EXPECT_FALSE(torch::equal(Factors(3), Factors(4)));
}

// A layer has both probabilities of the configuration, each in its place.
TEST(HiddenDropoutOfALayerTest, IsThatOfTheConfiguration) {
  EtcConfig config;
  config.hidden_size = kHidden;
  config.num_attention_heads = 4;
  config.initializer_range = 0.3;
  config.hidden_dropout_prob = 0.25;
  config.attention_probs_dropout_prob = 0.5;
  const EtcEncoderLayerOptions options = EncoderLayerOptions(config);
  EXPECT_EQ(options.hidden_dropout, 0.25);
  EXPECT_EQ(options.attention.dropout, 0.5);

  torch::manual_seed(6);
  const EncoderState input = {
      .long_states = torch::randn({kBatch, kLength, kHidden}),
      .global_states = torch::randn({kBatch, kLength, kHidden})};
  for (const auto& [of_hidden, of_attention] :
       {std::pair(0.0, 0.0), std::pair(0.25, 0.0), std::pair(0.0, 0.5)}) {
    config.hidden_dropout_prob = of_hidden;
    config.attention_probs_dropout_prob = of_attention;
    EtcEncoderLayer layer(EncoderLayerOptions(config));
    const auto run = [&] {
      return layer->forward(input, AttentionInputs::Everything(12));
    };
    const EncoderState first = run();
    const EncoderState second = run();
    const bool is_same = of_hidden + of_attention == 0.0;
    EXPECT_EQ(first.long_states.equal(second.long_states), is_same)
        << of_hidden << ", " << of_attention;
    EXPECT_EQ(first.global_states.equal(second.global_states), is_same)
        << of_hidden << ", " << of_attention;
  }
}

// Two calls in a row, and the two streams of one call, draw their own numbers.
TEST(HiddenDropoutOfALayerTest, DrawsAnewEachTime) {
  torch::manual_seed(5);
  FeedForwardBlock block(
      kHidden, kHidden,
      EtcEncoderLayerOptions{.sublayer = Sublayer::kPreNorm,
                             .hidden_dropout = kProbability});
  const torch::Tensor input = torch::randn({kBatch, kLength, kHidden});
  EXPECT_FALSE(torch::equal(block->forward(input), block->forward(input)));
  block->eval();
  EXPECT_TRUE(torch::equal(block->forward(input), block->forward(input)));

  EtcConfig config;
  config.vocab_size = 50;
  config.segment_vocab_size = 2;
  config.hidden_size = kHidden;
  config.num_attention_heads = 4;
  config.hidden_dropout_prob = kProbability;
  EtcEmbedding embedding(config);
  const torch::Tensor ids = torch::ones({1, kLength}, torch::kInt64);
  const auto embed = [&] {
    return embedding->forward({.token_ids = ids, .global_token_ids = ids});
  };
  const EmbeddedInput first = embed();
  EXPECT_FALSE(torch::equal(first.long_input.eq(0), embed().long_input.eq(0)));
  EXPECT_FALSE(torch::equal(first.long_input.eq(0), first.global_input.eq(0)));
}

}  // namespace
}  // namespace etc
