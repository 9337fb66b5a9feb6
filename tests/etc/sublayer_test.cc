// How a layer adds its output (doc/model.md 4.1): the four sublayers of an ETC
// layer in float64 against their formulas around the same attention and a
// feed-forward block in plain operations, with the feed-forward block shared
// and not (tests/etc/bert_input_test.cc does BERT); alphas and omegas against
// central differences; what they compute at their initial values; their
// gradients on any number of threads, with recomputed layers, in files and
// clones; and the pass that sets omegas, against the variances of its formula.

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "attention/pattern_builders.h"
#include "etc/admin_profile.h"
#include "etc/encoder_layer.h"
#include "etc/model.h"
#include "etc/nn/column_scale.h"
#include "etc/weights/checkpoint.h"
#include "tests/support/gradient_check.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/tensor_matchers.h"
#include "tests/support/toy_model.h"

namespace etc {
namespace {

constexpr const char* kAllSublayers[] = {"post_norm", "pre_norm", "rezero",
                                         "admin"};

EtcConfig SublayerConfig(const std::string& sublayer, bool shares_feed_forward,
                         int64_t layers = 2) {
  EtcConfig config = ToyConfig();
  config.sublayer = sublayer;
  config.share_feed_forward_params = shares_feed_forward;
  config.num_hidden_layers = layers;
  config.hidden_act = "relu";
  return config;
}

// Random parameters, those of norms and residual connections too.
void Randomise(torch::nn::Module* module) {
  torch::manual_seed(3);
  const torch::NoGradGuard no_grad;
  for (auto& parameter : module->named_parameters()) {
    parameter.value().normal_(
        parameter.key().find("norm.weight") != std::string::npos ? 1 : 0, 0.4);
  }
}

EtcModel RandomToyModel(const EtcConfig& config) {
  EtcModel model(config);
  Randomise(model.get());
  model->to(torch::kFloat64);
  return model;
}

using Function = std::function<torch::Tensor(const torch::Tensor&)>;

// The layer by its formulas.
class PlainLayer {
 public:
  PlainLayer(const EtcEncoderLayer& layer, const EtcConfig& config)
      : layer_(layer), config_(config), weights_(layer->named_parameters()) {}

  EncoderState Run(const EncoderState& state,
                   const AttentionInputs& inputs) const {
    const auto first = [&](const torch::Tensor& x, const std::string& prefix) {
      return config_.sublayer == "pre_norm" ? Norm(x, prefix) : x;
    };
    const GlobalLocalAttentionOutput change =
        EtcEncoderLayer(layer_)->attention()->forward(
            first(state.long_states, "long_attention_"),
            first(state.global_states, "global_attention_"), inputs, {});
    const std::string of_long = config_.share_feed_forward_params
                                    ? "feed_forward."
                                    : "long_feed_forward.";
    const std::string of_global = config_.share_feed_forward_params
                                      ? "feed_forward."
                                      : "global_feed_forward.";
    return {
        .long_states = FeedForward(
            Add(state.long_states, change.long_output, "long_attention_"),
            of_long),
        .global_states = FeedForward(
            Add(state.global_states, change.global_output, "global_attention_"),
            of_global)};
  }

 private:
  torch::Tensor At(const std::string& name) const { return weights_[name]; }
  torch::Tensor Norm(const torch::Tensor& x, const std::string& prefix) const {
    const torch::Tensor centred = x - x.mean(-1, true);
    return centred / (centred.square().mean(-1, true) + 1e-12).sqrt() *
               At(prefix + "norm.weight") +
           At(prefix + "norm.bias");
  }
  torch::Tensor Dense(const torch::Tensor& x, const std::string& name) const {
    return x.matmul(At(name + ".weight").t()) + At(name + ".bias");
  }
  // The end of a block whose output is `change`.
  torch::Tensor Add(const torch::Tensor& x, const torch::Tensor& change,
                    const std::string& prefix) const {
    if (config_.sublayer == "pre_norm") {
      return x + change;
    }
    if (config_.sublayer == "rezero") {
      return x + At(prefix + "alpha") * change;
    }
    return config_.sublayer == "admin"
               ? Norm(At(prefix + "omega") * x + change, prefix)
               : Norm(x + change, prefix);
  }
  torch::Tensor FeedForward(const torch::Tensor& x,
                            const std::string& prefix) const {
    const torch::Tensor in =
        config_.sublayer == "pre_norm" ? Norm(x, prefix) : x;
    return Add(x,
               Dense(torch::relu(Dense(in, prefix + "intermediate")),
                     prefix + "output"),
               prefix);
  }

  EtcEncoderLayer layer_;
  EtcConfig config_;
  torch::OrderedDict<std::string, torch::Tensor> weights_;
};

EncoderState RandomState() {
  torch::manual_seed(4);
  return {.long_states = torch::randn({2, 7, 4}, torch::kFloat64),
          .global_states = torch::randn({2, 3, 4}, torch::kFloat64)};
}

AttentionInputs SmallAttention() {
  return AttentionInputs(
      std::vector(2, UnrestrictedPattern(7, 3, /*local_radius=*/2,
                                         /*relative_pos_max_distance=*/2)));
}

TEST(SublayerTest, FollowsItsFormula) {
  for (const char* sublayer : kAllSublayers) {
    for (const bool shares : {false, true}) {
      SCOPED_TRACE(std::string(sublayer) + ", " + std::to_string(shares));
      const EtcConfig config = SublayerConfig(sublayer, shares);
      EtcEncoderLayer layer(EncoderLayerOptions(config));
      Randomise(layer.get());
      layer->to(torch::kFloat64);
      const EncoderState actual =
          layer->forward(RandomState(), SmallAttention());
      const EncoderState expected =
          PlainLayer(layer, config).Run(RandomState(), SmallAttention());
      EXPECT_TRUE(IsClose(actual.long_states, expected.long_states, 1e-12));
      EXPECT_TRUE(IsClose(actual.global_states, expected.global_states, 1e-12));
      // The kernels; norms of four features enlarge what float32 rounds.
      layer->to(torch::kFloat32);
      EncoderState single = RandomState();
      single.long_states = single.long_states.to(torch::kFloat32);
      single.global_states = single.global_states.to(torch::kFloat32);
      const EncoderState fast = layer->forward(single, SmallAttention());
      EXPECT_TRUE(IsClose(fast.long_states, expected.long_states, 1e-4));
      EXPECT_TRUE(IsClose(fast.global_states, expected.global_states, 1e-4));
    }
  }
}

TEST(SublayerTest, HasTheRightGradients) {
  for (const char* sublayer : {"rezero", "admin"}) {
    for (const bool shares : {false, true}) {
      SCOPED_TRACE(std::string(sublayer) + ", " + std::to_string(shares));
      EtcConfig config = SublayerConfig(sublayer, shares);
      config.hidden_act = "gelu";  // is smooth
      EtcModel model = RandomToyModel(config);
      std::vector<std::pair<std::string, torch::Tensor>> variables;
      for (const auto& parameter : model->named_parameters()) {
        if (parameter.key().ends_with("alpha") ||
            parameter.key().ends_with("omega")) {
          variables.emplace_back(parameter.key(), parameter.value());
        }
      }
      EXPECT_EQ(variables.size(), shares ? 2 * 3u : 2 * 4u);
      EXPECT_TRUE(GradientsMatchDifferences(
          [&] {
            const EtcOutput output = model->forward(ToyInput());
            return output.long_output.sin().sum() +
                   output.global_output.cos().sum();
          },
          variables, 1e-6));
    }
  }
}

TEST(SublayerTest, ReZeroBeginsWithTheIdentity) {
  for (const bool shares : {false, true}) {
    EtcEncoderLayer layer(
        EncoderLayerOptions(SublayerConfig("rezero", shares)));
    layer->to(torch::kFloat64);
    layer->train();
    const EncoderState output = layer->forward(RandomState(), SmallAttention());
    EXPECT_TRUE(output.long_states.equal(RandomState().long_states));
    EXPECT_TRUE(output.global_states.equal(RandomState().global_states));
    for (const auto& parameter : layer->named_parameters()) {
      EXPECT_EQ(parameter.key().find("norm"), std::string::npos);
    }
  }
}

// The change and its bias are dropped as one, before alpha.
TEST(SublayerTest, ReZeroDropsTheChange) {
  constexpr double kDropped = 0.2;
  FeedForwardBlock block(64, 64,
                         EtcEncoderLayerOptions{.sublayer = Sublayer::kReZero,
                                                .hidden_dropout = kDropped});
  Randomise(block.get());
  {
    const torch::NoGradGuard no_grad;
    torch::Tensor(block->named_parameters()["alpha"]).fill_(2);
  }
  const torch::Tensor input = torch::randn({2, 50, 64});
  block->eval();
  const torch::Tensor whole = block->forward(input) - input;
  block->train();
  const torch::Tensor change = block->forward(input) - input;
  const torch::Tensor is_dropped = change.eq(0);
  EXPECT_NEAR(is_dropped.to(torch::kFloat64).mean().item<double>(), kDropped,
              0.03);
  EXPECT_TRUE(IsClose(change,
                      torch::where(is_dropped, torch::zeros_like(whole),
                                   whole / (1 - kDropped)),
                      1e-4));
}

// With dropout: the same random numbers are drawn at the same places.
TEST(SublayerTest, AdminWithOmegasOfOneIsPostNormToTheBit) {
  for (const bool shares : {false, true}) {
    EtcConfig config = SublayerConfig("post_norm", shares);
    config.hidden_dropout_prob = 0.2;
    config.attention_probs_dropout_prob = 0.1;
    torch::manual_seed(5);
    EtcModel post(config);
    config.sublayer = "admin";
    torch::manual_seed(5);
    EtcModel admin(config);
    EXPECT_TRUE(HasUnitOmegas(admin));
    EXPECT_EQ(admin->parameters().size(),
              post->parameters().size() + 2 * (shares ? 3 : 4));
    for (const bool training : {false, true}) {
      std::vector<EtcOutput> outputs;
      for (EtcModel model : {post, admin}) {
        model->train(training);
        torch::manual_seed(6);
        outputs.push_back(model->forward(ToyInput()));
      }
      EXPECT_TRUE(outputs[0].long_output.equal(outputs[1].long_output));
      EXPECT_TRUE(outputs[0].global_output.equal(outputs[1].global_output));
    }
  }
}

using Gradients = std::map<std::string, torch::Tensor>;

Gradients GradientsOf(EtcModel model) {
  model->train();
  model->zero_grad();
  torch::manual_seed(7);
  const EtcOutput output = model->forward(ToyInput());
  (output.long_output.sin().sum() + output.global_output.cos().sum())
      .backward();
  Gradients gradients;
  for (const auto& parameter : model->named_parameters()) {
    gradients.emplace(parameter.key(), parameter.value().grad().clone());
  }
  return gradients;
}

TEST(SublayerTest, RecomputedLayersHaveTheSameGradients) {
  for (const char* sublayer : {"rezero", "admin"}) {
    EtcConfig config = SublayerConfig(sublayer, true, /*layers=*/3);
    config.hidden_dropout_prob = 0.2;
    EtcModel stored(config);
    Randomise(stored.get());
    config.grad_checkpointing_period = 1;
    EtcModel recomputed(config);
    Randomise(recomputed.get());
    const Gradients expected = GradientsOf(stored);
    for (const auto& [name, gradient] : GradientsOf(recomputed)) {
      const torch::Tensor& other = expected.at(name);
      EXPECT_TRUE(IsClose(gradient, other,
                          1e-5 * (1 + other.abs().max().item<double>())))
          << name;
    }
  }
}

TEST(SublayerTest, FilesAndClonesHoldItsParameters) {
  TemporaryDirectory directory;
  for (const char* sublayer : {"rezero", "admin"}) {
    const EtcConfig config = SublayerConfig(sublayer, false);
    EtcModel model(config);
    Randomise(model.get());
    const torch::Tensor expected = model->forward(ToyInput()).long_output;
    const auto clone = std::dynamic_pointer_cast<EtcModelImpl>(model->clone());
    EXPECT_TRUE(clone->forward(ToyInput()).long_output.equal(expected));
    const std::string path =
        directory.File(std::string(sublayer) + ".safetensors");
    ASSERT_TRUE(WriteTensors(path, ModuleTensors(*model), {}).ok());
    EtcModel again(config);
    const auto reader = TensorReader::Open(path);
    ASSERT_TRUE(reader.ok()) << reader.status();
    ASSERT_TRUE(
        LoadTensors(*reader, ModuleTensors(*again), NameMatch::kBoth).ok());
    EXPECT_TRUE(again->forward(ToyInput()).long_output.equal(expected));
  }
}

// Rows in several chunks, none full.
TEST(ScaleColumnsTest, IsItsDefinitionOnAnyNumberOfThreads) {
  torch::manual_seed(8);
  const torch::Tensor input = torch::randn({3, 411, 19});
  const torch::Tensor factors = torch::randn({19});
  const torch::Tensor residual = torch::randn({3, 411, 19});
  const torch::Tensor weights = torch::randn({3, 411, 19});
  const auto run = [&](torch::ScalarType type, bool adds) {
    std::vector<torch::Tensor> leaves;
    for (const torch::Tensor& tensor : {input, factors, residual}) {
      leaves.push_back(tensor.to(type).detach().clone().requires_grad_(true));
    }
    const torch::Tensor output =
        ScaleColumns(leaves[0], leaves[1], adds ? leaves[2] : torch::Tensor());
    (output * weights.to(type)).sum().backward();
    std::vector<torch::Tensor> all = {output.detach(), leaves[0].grad(),
                                      leaves[1].grad()};
    if (adds) {
      all.push_back(leaves[2].grad());
    }
    return all;
  };
  const int threads_before = at::get_num_threads();
  for (const bool adds : {false, true}) {
    const auto exact = run(torch::kFloat64, adds);
    EXPECT_TRUE(IsClose(exact[0],
                        input.to(torch::kFloat64) * factors +
                            (adds ? residual : torch::zeros({1})),
                        1e-14));
    at::set_num_threads(1);
    const auto first = run(torch::kFloat32, adds);
    for (size_t i = 0; i < exact.size(); ++i) {
      EXPECT_TRUE(IsClose(first[i], exact[i], i == 2 ? 1e-3 : 1e-5)) << i;
    }
    for (const int threads : {2, 3}) {
      at::set_num_threads(threads);
      const auto again = run(torch::kFloat32, adds);
      for (size_t i = 0; i < first.size(); ++i) {
        EXPECT_TRUE(again[i].equal(first[i])) << i << ", " << threads;
      }
    }
  }
  at::set_num_threads(threads_before);
}

TEST(ScaleColumnsTest, RefusesOtherShapes) {
  EXPECT_THROW(ScaleColumns(torch::ones({2, 3}), torch::ones({2})), c10::Error);
  EXPECT_THROW(
      ScaleColumns(torch::ones({2, 3}), torch::ones({3}), torch::ones({3})),
      c10::Error);
}

// --- The pass that sets omegas ----------------------------------------------

// Over all tokens, of which ToyInput() has no padding: those with id 0 see each
// other.
double VarianceOfTokens(const torch::Tensor& stream) {
  return (stream - stream.mean()).square().mean().item<double>();
}

double OmegaOf(const EtcModel& model, const std::string& name) {
  const torch::Tensor omega = model->named_parameters()[name];
  EXPECT_TRUE(omega.eq(omega[0]).all().item<bool>()) << name;
  return omega[0].item<double>();
}

// Sets the omegas of a model by a pass over `input`.
void Profile(EtcModel model, const EtcInput& input) {
  model->ProfileNextPass();
  model->forward(input);
}

// Each layer's omegas by the formula, from the states in front of it. Its parts
// f follow from running it with these omegas: since a LayerNorm without scale
// hides the variance of its input, norms are taken apart as in PlainLayer.
TEST(ProfileNextPassTest, SetsAccumulatedDeviations) {
  for (const bool shares : {false, true}) {
    SCOPED_TRACE(shares);
    const EtcConfig config = SublayerConfig("admin", shares, /*layers=*/3);
    EtcModel model(config);
    Randomise(model.get());
    model->to(torch::kFloat64);
    {
      const torch::NoGradGuard no_grad;
      for (auto& parameter : model->named_parameters()) {
        if (parameter.key().ends_with("omega")) {
          parameter.value().fill_(1);
        }
      }
    }
    model->eval();
    Profile(model, ToyInput());
    EXPECT_FALSE(HasUnitOmegas(model));

    // The states of a pass with these omegas are those of the pass that set
    // them.
    EtcInput input = ToyInput();
    input.inspect.hidden_states = true;
    const torch::NoGradGuard no_grad;
    const Inspected inspected = model->forward(input).inspected;
    const auto weights = model->named_parameters();
    double of_long = 1;  // r^2
    double of_global = 1;
    for (int64_t n = 0; n < config.num_hidden_layers; ++n) {
      SCOPED_TRACE(n);
      const std::string p = "layers." + std::to_string(n) + ".";
      const auto module = std::dynamic_pointer_cast<EtcEncoderLayerImpl>(
          model->named_modules()["layers." + std::to_string(n)]);
      ASSERT_NE(module, nullptr);
      torch::Tensor longs = inspected.long_states[static_cast<size_t>(n)];
      torch::Tensor globals = inspected.global_states[static_cast<size_t>(n)];
      const auto advance = [&](const std::string& prefix, torch::Tensor* x,
                               const torch::Tensor& change, double* r2) {
        const double omega = OmegaOf(model, p + prefix + "omega");
        EXPECT_NEAR(omega, std::sqrt(*r2), 1e-6) << prefix;
        *r2 = VarianceOfTokens(*x * omega) + VarianceOfTokens(change);
        *x = torch::layer_norm(*x * omega + change, {config.hidden_size},
                               weights[p + prefix + "norm.weight"],
                               weights[p + prefix + "norm.bias"], 1e-12);
      };
      const GlobalLocalAttentionOutput change =
          module->attention()->forward(longs, globals, input.attention, {});
      advance("long_attention_", &longs, change.long_output, &of_long);
      advance("global_attention_", &globals, change.global_output, &of_global);
      if (shares) {
        of_long = of_global = (7 * of_long + 3 * of_global) / 10;
      }
      const auto feed_forward = [&](const std::string& prefix,
                                    const torch::Tensor& x) {
        const std::string name = p + prefix;
        return torch::linear(
            torch::relu(torch::linear(x, weights[name + "intermediate.weight"],
                                      weights[name + "intermediate.bias"])),
            weights[name + "output.weight"], weights[name + "output.bias"]);
      };
      const std::string first = shares ? "feed_forward." : "long_feed_forward.";
      const std::string second =
          shares ? "feed_forward." : "global_feed_forward.";
      advance(first, &longs, feed_forward(first, longs), &of_long);
      advance(second, &globals, feed_forward(second, globals), &of_global);
      EXPECT_TRUE(IsClose(longs, inspected.long_states[size_t(n) + 1], 1e-9));
    }
  }
}

// Padding at the end, by a pattern or a mask, does not count; nor do the rows
// asked for.
TEST(ProfileNextPassTest, DependsOnNothingButTokens) {
  const auto omegas = [](const EtcInput& input, int64_t period) {
    EtcConfig config = SublayerConfig("admin", true, /*layers=*/3);
    config.grad_checkpointing_period = period;
    torch::manual_seed(9);
    EtcModel model(config);
    model->to(torch::kFloat64);
    model->train();
    Profile(model, input);
    std::vector<double> all;
    for (const auto& parameter : model->named_parameters()) {
      EXPECT_FALSE(parameter.value().grad().defined());
      if (parameter.key().ends_with("omega")) {
        all.push_back(parameter.value()[0].item<double>());
      }
    }
    return all;
  };
  const auto expect_same = [](const std::vector<double>& left,
                              const std::vector<double>& right) {
    ASSERT_EQ(left.size(), right.size());
    for (size_t i = 0; i < left.size(); ++i) {
      EXPECT_NEAR(left[i], right[i], 1e-6) << i;
    }
  };
  EtcInput padded = ToyInput();
  padded.attention = AttentionInputs::Padded(
      torch::tensor({1, 1, 1, 1, 1, 0, 0}).to(torch::kBool).unsqueeze(0),
      torch::tensor({1, 1, 0}).to(torch::kBool).unsqueeze(0));
  EtcInput cut = padded;
  cut.token_ids = padded.token_ids.narrow(1, 0, 5);
  cut.global_token_ids = padded.global_token_ids.narrow(1, 0, 2);
  cut.attention = AttentionInputs();
  const std::vector<double> expected = omegas(cut, 0);
  expect_same(omegas(padded, 0), expected);
  expect_same(omegas(padded, 1), expected);
  padded.outputs = {.longs = torch::tensor({0}, torch::kInt64),
                    .globals = torch::empty({0}, torch::kInt64)};
  expect_same(omegas(padded, 0), expected);
  EXPECT_GT(expected.back(), 1.0);
}

// In training, where layers are computed in slices, too.
TEST(ProfileNextPassTest, SetsTheSameOmegasForLayersInSlices) {
  std::vector<double> omegas;
  for (const bool in_slices : {false, true}) {
    torch::manual_seed(9);
    EtcModel model(SublayerConfig("admin", true));
    model->train();
    if (in_slices) {
      model->set_layer_slices(LayerSlices{.heads = 1, .tokens = 3});
    }
    Profile(model, ToyInput());
    EXPECT_FALSE(HasUnitOmegas(model));
    omegas.push_back(OmegaOf(model, "layers.1.feed_forward.omega"));
  }
  EXPECT_EQ(omegas[0], omegas[1]);
}

TEST(ProfileNextPassTest, IsForAdminAndOnePassOnly) {
  EtcModel post(SublayerConfig("post_norm", true));
  EXPECT_THROW(post->ProfileNextPass(), c10::Error);
  EtcModel model(SublayerConfig("admin", true));
  model->ProfileNextPass();
  const EtcOutput first = model->forward(ToyInput());
  EXPECT_FALSE(first.long_output.requires_grad());
  const double omega = OmegaOf(model, "layers.1.feed_forward.omega");
  const EtcOutput second = model->forward(ToyInput());
  EXPECT_TRUE(second.long_output.requires_grad());
  EXPECT_TRUE(IsClose(second.long_output, first.long_output, 1e-5));
  EXPECT_EQ(OmegaOf(model, "layers.1.feed_forward.omega"), omega);
}

}  // namespace
}  // namespace etc
