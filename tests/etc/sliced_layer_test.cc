// Layers in slices of heads and tokens: outputs, gradients and dropout are
// those of layers at once, in all residual modes, and for rows of the outputs;
// what is kept between forward and backward; what is refused.

#include "etc/sliced_layer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/bfloat16.h"
#include "etc/model.h"
#include "tests/support/error_message.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/tensor_matchers.h"
#include "tests/support/thread_counts.h"
#include "tests/support/toy_model.h"

namespace etc {
namespace {

using testing::HasSubstr;

struct Case {
  const char* residual = "sum";
  const char* sublayer = "post_norm";
  double dropout = 0.0;
  bool shares = true;
  std::optional<LayerSlices> slices = std::nullopt;
  torch::ScalarType dtype = torch::kFloat32;
  OutputRows rows = {};
  bool needs_globals = true;
  LinearPrecision precision = LinearPrecision::kFloat32;
};

std::vector<torch::Tensor> LossAndGradients(const Case& c) {
  EtcConfig config = ToyConfig();
  config.num_hidden_layers = 4;
  config.hidden_dropout_prob = c.dropout;
  config.attention_probs_dropout_prob = c.dropout;
  config.initializer_range = 0.3;
  config.residual_attention = c.residual;
  config.residual_gate_init = 0.7;
  config.residual_decay = 0.8;
  config.sublayer = c.sublayer;
  config.share_qkv_projections = c.shares;
  torch::manual_seed(1);
  EtcModel model(config);
  for (const auto& parameter : model->named_parameters()) {
    if (parameter.key().find("alpha") != std::string::npos) {
      const torch::NoGradGuard no_grad;
      parameter.value().fill_(0.5);
    }
  }
  model->to(c.dtype);
  model->set_linear_precision(c.precision);
  model->set_layer_slices(c.slices);
  model->train();
  torch::manual_seed(2);
  EtcInput input = ToyInput();
  input.outputs = c.rows;
  const EtcOutput output = model->forward(input);
  torch::Tensor loss = output.long_output.sin().sum();
  if (c.needs_globals) {
    loss = loss + output.global_output.cos().sum();
  }
  loss.backward();
  // The number that is drawn next says that as many seeds were drawn.
  std::vector<torch::Tensor> all = {loss.detach(), torch::rand({1}),
                                    output.long_output.detach(),
                                    output.global_output.detach()};
  for (const torch::Tensor& parameter : model->parameters()) {
    all.push_back(parameter.grad());
  }
  return all;
}

void ExpectSameInSlices(Case c, double tolerance) {
  const std::vector<torch::Tensor> whole = LossAndGradients(c);
  for (const LayerSlices& slices :
       {LayerSlices{.heads = 1, .tokens = 3},
        LayerSlices{.heads = 2, .tokens = 5}, LayerSlices{}}) {
    c.slices = slices;
    SCOPED_TRACE(testing::Message()
                 << c.residual << ", " << c.sublayer << ", dropout "
                 << c.dropout << (c.shares ? ", shared" : "") << ", "
                 << slices.heads << " heads, " << slices.tokens << " tokens");
    const std::vector<torch::Tensor> in_slices = LossAndGradients(c);
    ASSERT_EQ(whole.size(), in_slices.size());
    for (size_t i = 0; i < whole.size(); ++i) {
      ASSERT_EQ(whole[i].defined(), in_slices[i].defined()) << i;
      if (whole[i].defined()) {
        EXPECT_TRUE(IsClose(in_slices[i], whole[i], tolerance)) << i;
      }
    }
  }
}

TEST(SlicedLayerTest, GivesTheGradientsOfLayersAtOnceInDouble) {
  for (const char* residual : {"off", "sum", "mean", "decay", "gate"}) {
    for (const bool shares : {true, false}) {
      ExpectSameInSlices(
          {.residual = residual, .shares = shares, .dtype = torch::kFloat64},
          1e-12);
    }
  }
}

TEST(SlicedLayerTest, DropsTheSameElements) {
  for (const char* residual : {"off", "sum", "mean", "decay", "gate"}) {
    ExpectSameInSlices({.residual = residual, .dropout = 0.3}, 5e-5);
  }
}

TEST(SlicedLayerTest, ServesAllSublayers) {
  for (const char* sublayer : {"pre_norm", "rezero", "admin"}) {
    ExpectSameInSlices({.sublayer = sublayer, .dtype = torch::kFloat64}, 1e-12);
    ExpectSameInSlices({.sublayer = sublayer, .dropout = 0.2}, 5e-5);
  }
}

TEST(SlicedLayerTest, GivesRowsOfTheOutputs) {
  const torch::Tensor some = torch::tensor({2, 0, 5}, torch::kInt64);
  const torch::Tensor none = torch::empty({0}, torch::kInt64);
  for (const OutputRows& rows :
       {OutputRows{.longs = some}, OutputRows{.longs = some, .globals = none},
        OutputRows{.longs = none}}) {
    ExpectSameInSlices({.dtype = torch::kFloat64, .rows = rows}, 1e-12);
    ExpectSameInSlices({.dropout = 0.2, .rows = rows}, 5e-5);
  }
  ExpectSameInSlices({.dtype = torch::kFloat64, .needs_globals = false}, 1e-12);
}

// All tokens are global.
TEST(SlicedLayerTest, ServesBert) {
  for (const torch::ScalarType dtype : {torch::kFloat64, torch::kFloat32}) {
    std::vector<torch::Tensor> gradients;
    for (const bool in_slices : {false, true}) {
      EtcConfig config = ToyBertConfig(/*positions=*/9);
      config.residual_attention = "sum";
      if (dtype == torch::kFloat32) {
        config.hidden_dropout_prob = 0.2;
        config.attention_probs_dropout_prob = 0.2;
      }
      torch::manual_seed(1);
      EtcModel model(config);
      model->to(dtype);
      model->train();
      if (in_slices) {
        model->set_layer_slices(LayerSlices{.heads = 1, .tokens = 4});
      }
      torch::manual_seed(2);
      model
          ->forward({.token_ids = torch::zeros({2, 0}, torch::kInt64),
                     .global_token_ids =
                         torch::arange(18).reshape({2, 9}).remainder(11)})
          .global_output.sin()
          .sum()
          .backward();
      if (!in_slices) {
        for (const torch::Tensor& parameter : model->parameters()) {
          gradients.push_back(parameter.grad());
        }
        continue;
      }
      for (size_t i = 0; i < gradients.size(); ++i) {
        const torch::Tensor gradient = model->parameters()[i].grad();
        ASSERT_EQ(gradient.defined(), gradients[i].defined()) << i;
        EXPECT_TRUE(!gradient.defined() ||
                    IsClose(gradient, gradients[i],
                            dtype == torch::kFloat64 ? 1e-12 : 5e-5))
            << i;
      }
    }
  }
}

TEST(SlicedLayerTest, GivesTheSameInBfloat16) {
  if (kernels::Bfloat16ProductsOfThisCpu() ==
      kernels::Bfloat16Products::kNone) {
    GTEST_SKIP() << "this CPU has no products in bfloat16";
  }
  for (const double dropout : {0.0, 0.2}) {
    ExpectSameInSlices({.dropout = dropout,
                        .needs_globals = dropout > 0.0,
                        .precision = LinearPrecision::kBfloat16},
                       0.03);
  }
}

TEST(SlicedLayerTest, KeepsTheSameInFiles) {
  const TemporaryDirectory directory;
  Case c = {.residual = "mean", .dropout = 0.2, .slices = LayerSlices{}};
  const std::vector<torch::Tensor> in_memory = LossAndGradients(c);
  c.slices->directory = directory.path();
  const std::vector<torch::Tensor> in_files = LossAndGradients(c);
  ASSERT_EQ(in_memory.size(), in_files.size());
  for (size_t i = 0; i < in_memory.size(); ++i) {
    ASSERT_EQ(in_memory[i].defined(), in_files[i].defined()) << i;
    EXPECT_TRUE(!in_memory[i].defined() ||
                IsClose(in_files[i], in_memory[i], 5e-5))
        << i;
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));

  c.slices->directory = "/nowhere";
  EXPECT_THAT(MessageOf([&] { LossAndGradients(c); }),
              HasSubstr("cannot create a temporary file in /nowhere"));
}

TEST(SlicedLayerTest, GivesTheSameBitsOnAnyNumberOfThreads) {
  const Case c = {.dropout = 0.2, .slices = LayerSlices{.heads = 1}};
  ExpectSameOnAnyNumberOfThreads([&] {
    std::vector<torch::Tensor> found = LossAndGradients(c);
    std::erase_if(
        found, [](const torch::Tensor& tensor) { return !tensor.defined(); });
    return found;
  });
}

// The gradient of an output may be that of other tensors too.
TEST(SlicedLayerTest, LeavesTheGradientThatItIsGiven) {
  for (const torch::ScalarType dtype : {torch::kFloat32, torch::kFloat64}) {
    torch::manual_seed(1);
    EtcModel model(ToyConfig());
    model->to(dtype);
    model->set_layer_slices(LayerSlices{.heads = 1, .tokens = 3});
    model->train();
    const EtcOutput output = model->forward(ToyInput());
    const std::vector<torch::Tensor> given = {
        torch::randn_like(output.long_output),
        torch::randn_like(output.global_output)};
    const std::vector<torch::Tensor> before = {given[0].clone(),
                                               given[1].clone()};
    torch::autograd::backward({output.long_output, output.global_output},
                              given);
    EXPECT_TRUE(given[0].equal(before[0]));
    EXPECT_TRUE(given[1].equal(before[1]));
  }
}

// Evaluations compute layers at once, and may inspect them.
TEST(SlicedLayerTest, IsForTraining) {
  torch::manual_seed(1);
  EtcModel model(ToyConfig());
  model->to(torch::kFloat32);
  model->set_layer_slices(LayerSlices{});
  EtcInput input = ToyInput();
  input.inspect.hidden_states = true;
  model->eval();
  EXPECT_EQ(model->forward(input).inspected.long_states.size(), 3);
  model->train();
  EXPECT_THAT(MessageOf([&] { model->forward(input); }),
              HasSubstr("layers in slices cannot be inspected"));
  input.inspect = {};
  model->set_residual_attention(ResidualAttention::kSum);
  model->set_score_storage(ScoreStorage::kStore);
  EXPECT_THAT(MessageOf([&] { model->forward(input); }),
              HasSubstr("need the score storage \"reverse\""));
  model->set_score_storage(ScoreStorage::kReverse);
  model->set_layer_slices(LayerSlices{.heads = 0});
  EXPECT_THAT(MessageOf([&] { model->forward(input); }),
              HasSubstr("at least 1 head and 1 token"));
}

// A model with layers in slices, and what its backward pass says after
// `change`.
std::string MessageAfter(const LayerSlices& slices,
                         const std::function<void(EtcModel)>& change) {
  EtcConfig config = ToyConfig();
  config.hidden_dropout_prob = 0.3;
  config.attention_probs_dropout_prob = 0.3;
  config.residual_attention = "sum";
  torch::manual_seed(1);
  EtcModel model(config);
  model->set_layer_slices(slices);
  model->train();
  const torch::Tensor loss = model->forward(ToyInput()).long_output.sin().sum();
  change(model);
  return MessageOf([&] { loss.backward(); });
}

TEST(SlicedLayerTest, RefusesABackwardPassOfParametersThatChanged) {
  const TemporaryDirectory directory;
  for (const std::string& place : {std::string(), directory.path()}) {
    const auto message = [&](const char* name) {
      return MessageAfter(
          {.heads = 1, .directory = place}, [&](EtcModel model) {
            const torch::NoGradGuard no_grad;
            torch::Tensor weight = model->named_parameters()[name];
            weight.mul_(1.3);
          });
    };
    for (const char* name : {"layers.0.attention.long_query.weight",
                             "layers.1.feed_forward.intermediate.bias"}) {
      EXPECT_THAT(message(name), HasSubstr("modified by an inplace operation"))
          << name << " in \"" << place << "\"";
    }
  }
}

TEST(SlicedLayerTest, RefusesABackwardPassInOtherModes) {
  const LayerSlices slices = {.heads = 1};
  EXPECT_EQ(MessageAfter(slices, [](EtcModel /*model*/) {}),
            "nothing was thrown");
  EXPECT_THAT(MessageAfter(slices, [](EtcModel model) { model->eval(); }),
              HasSubstr("the training mode (train(), eval()) changed"));
  EXPECT_THAT(
      MessageAfter(slices,
                   [](EtcModel model) {
                     model->set_linear_precision(LinearPrecision::kBfloat16);
                   }),
      HasSubstr("the precision of linear layers changed"));
  // Residual options are those of the forward pass.
  EXPECT_EQ(
      MessageAfter(slices,
                   [](EtcModel model) {
                     model->set_residual_attention(ResidualAttention::kOff);
                     model->set_score_storage(ScoreStorage::kStore);
                   }),
      "nothing was thrown");
}

TEST(SlicedLayerTest, RefusesGradientsOfGradients) {
  torch::manual_seed(1);
  EtcModel model(ToyConfig());
  model->to(torch::kFloat64);
  model->set_layer_slices(LayerSlices{});
  model->train();
  const torch::Tensor loss =
      model->forward(ToyInput()).long_output.square().sum();
  EXPECT_THAT(MessageOf([&] {
                torch::autograd::grad({loss}, {model->token_embedding_table()},
                                      {}, /*retain_graph=*/true,
                                      /*create_graph=*/true);
              }),
              HasSubstr("gradients of gradients"));
}

}  // namespace
}  // namespace etc
