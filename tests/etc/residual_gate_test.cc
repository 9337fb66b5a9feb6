// The encoder with gates and decays: with gates of 0 it computes what it does
// without residual attention, with gates of 1 what it does with the sum,
// outputs to the bit; gradients of gates against differences in double; the
// same with gradient checkpointing and in each storage of scores.

#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "etc/bert_input.h"
#include "etc/config.h"
#include "etc/model.h"
#include "tests/support/gradient_check.h"
#include "tests/support/tensor_matchers.h"
#include "tests/support/toy_model.h"

namespace etc {
namespace {

EtcConfig GateConfig(double init) {
  EtcConfig config = ToyConfig();
  config.num_hidden_layers = 3;
  config.initializer_range = 0.5;
  config.residual_attention = "gate";
  config.residual_gate_init = init;
  return config;
}

// Random weights; the same for each mode, since gates draw no numbers.
EtcModel GatedModel(const EtcConfig& config) {
  torch::manual_seed(11);
  EtcModel model(config);
  model->eval();
  return model;
}

void ExpectSameOutputs(EtcModel model, EtcModel expected) {
  const EtcOutput a = model->forward(ToyInput());
  const EtcOutput b = expected->forward(ToyInput());
  EXPECT_TRUE(a.long_output.equal(b.long_output));
  EXPECT_TRUE(a.global_output.equal(b.global_output));
}

TEST(ResidualGateTest, GatesOf0And1AreOffAndSumToTheBit) {
  for (const AttentionImplementation implementation :
       {AttentionImplementation::kKernel, AttentionImplementation::kBlocked,
        AttentionImplementation::kReference}) {
    for (const auto& [init, mode] :
         {std::pair(0.0, "off"), std::pair(1.0, "sum")}) {
      EtcModel gate = GatedModel(GateConfig(init));
      EtcConfig config = GateConfig(init);
      config.residual_attention = mode;
      EtcModel plain = GatedModel(config);
      gate->set_attention_implementation(implementation);
      plain->set_attention_implementation(implementation);
      ExpectSameOutputs(gate, plain);
    }
    EtcModel half = GatedModel(GateConfig(0.5));
    half->set_attention_implementation(implementation);
    EXPECT_FALSE(
        half->forward(ToyInput())
            .long_output.equal(
                GatedModel(GateConfig(0.0))->forward(ToyInput()).long_output));
  }
}

TEST(ResidualGateTest, AllLayersButTheFirstHaveGates) {
  const EtcModel model = GatedModel(GateConfig(0.25));
  std::vector<std::string> names;
  for (const auto& parameter : model->named_parameters()) {
    if (parameter.key().find("_gate") != std::string::npos) {
      names.push_back(parameter.key());
      EXPECT_TRUE(parameter.value().equal(
          torch::full({model->config().num_attention_heads}, 0.25)));
    }
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{
                "layers.1.attention.g2g_gate", "layers.1.attention.g2l_gate",
                "layers.1.attention.l2l_gate", "layers.1.attention.l2g_gate",
                "layers.2.attention.g2g_gate", "layers.2.attention.g2l_gate",
                "layers.2.attention.l2l_gate", "layers.2.attention.l2g_gate"}));
}

// Values and gradients of a scalar of both streams, by all parameters.
std::vector<torch::Tensor> WithGradients(EtcModel model) {
  model->zero_grad();
  const EtcOutput output = model->forward(ToyInput());
  (output.long_output.sin().sum() + output.global_output.cos().sum())
      .backward();
  std::vector<torch::Tensor> all = {output.long_output.detach(),
                                    output.global_output.detach()};
  for (const torch::Tensor& parameter : model->parameters()) {
    EXPECT_TRUE(parameter.grad().defined());
    all.push_back(parameter.grad().clone());
  }
  return all;
}

// Checks all gates, and keys of both sides whose scores are carried to the
// layers above; other parameters:
// GlobalLocalAttentionTest.HasTheRightGradientsThroughThreeLayers (gates) and
// BackendGradientsTest (decay).
TEST(ResidualGateTest, GradientsAreThoseOfDifferences) {
  for (const std::string mode : {"gate", "decay"}) {
    EtcConfig config = GateConfig(0.5);
    config.residual_attention = mode;
    config.residual_decay = 0.7;
    EtcModel model = GatedModel(config);
    model->to(torch::kFloat64);
    std::vector<std::pair<std::string, torch::Tensor>> variables;
    for (const auto& parameter : model->named_parameters()) {
      if (parameter.key().find("_gate") != std::string::npos ||
          parameter.key() == "layers.0.attention.l2l_key.weight" ||
          parameter.key() == "layers.0.attention.g2g_key.weight") {
        variables.emplace_back(parameter.key(), parameter.value());
      }
    }
    ASSERT_EQ(variables.size(), mode == "gate" ? 8u + 2 : 2u);
    EXPECT_TRUE(GradientsMatchDifferences(
        [&] {
          const EtcOutput output = model->forward(ToyInput());
          return output.long_output.sin().sum() +
                 output.global_output.cos().sum();
        },
        variables, /*atol=*/1e-6, /*max_elements=*/4));
  }
}

TEST(ResidualGateTest, StoragesAndCheckpointedGradientsAgree) {
  for (const char* mode : {"gate", "decay"}) {
    EtcConfig config = GateConfig(0.5);
    config.residual_attention = mode;
    config.hidden_dropout_prob = 0.0;
    config.attention_probs_dropout_prob = 0.0;
    std::vector<torch::Tensor> expected;
    for (const ScoreStorage storage :
         {ScoreStorage::kStore, ScoreStorage::kReverse,
          ScoreStorage::kRecompute}) {
      for (const int64_t period : {0, 1, 2}) {
        config.grad_checkpointing_period = period;
        EtcModel model = GatedModel(config);
        model->train();
        model->set_score_storage(storage);
        const std::vector<torch::Tensor> actual = WithGradients(model);
        if (expected.empty()) {
          expected = actual;
        }
        ASSERT_EQ(actual.size(), expected.size());
        for (size_t i = 0; i < actual.size(); ++i) {
          EXPECT_TRUE(IsClose(actual[i], expected[i], 1e-5)) << mode << i;
        }
      }
    }
  }
}

TEST(ResidualGateTest, BertHasGatesOfItsOneBlock) {
  EtcConfig config = GateConfig(1.0);
  config.has_long_tokens = false;
  config.share_qkv_projections = true;
  config.share_kv_projections = true;
  config.share_att_output_projection = true;
  config.share_feed_forward_params = true;
  const torch::Tensor ids = torch::tensor({{3, 5, 2, 4, 1}}, torch::kInt64);
  const auto output = [&](const char* mode) {
    config.residual_attention = mode;
    return GatedModel(config)->forward(BertInput(ids)).global_output;
  };
  EXPECT_TRUE(output("gate").equal(output("sum")));
  config.residual_attention = "gate";
  const auto parameters = GatedModel(config)->named_parameters();
  EXPECT_TRUE(parameters.contains("layers.2.attention.g2g_gate"));
  EXPECT_FALSE(parameters.contains("layers.2.attention.l2l_gate"));
}

TEST(ResidualGateTest, OtherModesAreToggledAndGatesStay) {
  EtcModel model = GatedModel(GateConfig(0.5));
  const torch::Tensor with = model->forward(ToyInput()).long_output;
  const size_t parameters = model->parameters().size();
  model->set_residual_attention(ResidualAttention::kOff);
  const auto clone = std::dynamic_pointer_cast<EtcModelImpl>(model->clone());
  ASSERT_NE(clone, nullptr);
  EXPECT_EQ(clone->residual_attention(), ResidualAttention::kOff);
  ExpectSameOutputs(EtcModel(clone), GatedModel(GateConfig(0.0)));
  for (EtcModelImpl* one : {model.get(), clone.get()}) {
    EXPECT_EQ(one->parameters().size(), parameters);
    one->set_residual_attention(ResidualAttention::kGate);
    EXPECT_TRUE(one->forward(ToyInput()).long_output.equal(with));
  }

  EtcModel without = GatedModel(ToyConfig());
  EXPECT_THROW(without->set_residual_attention(ResidualAttention::kGate),
               c10::Error);
  EXPECT_EQ(without->config().residual_attention, "off");
  EXPECT_NO_THROW(without->set_residual_attention(ResidualAttention::kDecay));
  EtcConfig short_decay = ToyConfig();
  short_decay.num_hidden_layers = 12;
  short_decay.residual_decay = 0.3;
  EtcModel deep = GatedModel(short_decay);
  EXPECT_THROW(deep->set_residual_attention(ResidualAttention::kDecay),
               c10::Error);
}

}  // namespace
}  // namespace etc
