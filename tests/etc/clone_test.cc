// clone() of the modules of the installed headers: the same output to the bit,
// parameters of its own, the same settings; also within modules of others.

#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <torch/nn/cloneable.h>
#include <torch/types.h>

#include <memory>
#include <optional>
#include <vector>

#include "attention/global_local_attention.h"
#include "etc/model.h"
#include "tests/support/toy_model.h"

namespace etc {
namespace {

template <typename Impl>
std::shared_ptr<Impl> CloneOf(const Impl& module) {
  return std::dynamic_pointer_cast<Impl>(module.clone());
}

EtcModel Model(bool share_qkv, int64_t period) {
  EtcConfig config = ToyConfig();
  config.num_hidden_layers = 3;
  config.initializer_range = 0.3;
  config.share_qkv_projections = share_qkv;
  config.grad_checkpointing_period = period;
  EtcModel model(config);
  model->set_residual_attention(ResidualAttention::kMean);
  model->set_score_storage(ScoreStorage::kRecompute);
  model->eval();
  return model;
}

TEST(CloneTest, AModelGivesTheSameWithParametersOfItsOwn) {
  torch::manual_seed(1);
  for (const bool share_qkv : {false, true}) {
    const EtcModel model = Model(share_qkv, share_qkv ? 1 : 0);
    const auto clone = CloneOf(*model);
    ASSERT_NE(clone, nullptr);
    const EtcOutput expected = EtcModel(model)->forward(ToyInput());
    const EtcOutput actual = clone->forward(ToyInput());
    EXPECT_TRUE(actual.long_output.equal(expected.long_output));
    EXPECT_TRUE(actual.global_output.equal(expected.global_output));
    EXPECT_TRUE(actual.scores.l2l->equal(expected.scores.l2l));
    EXPECT_EQ(clone->parameters().size(), model->parameters().size());
    actual.long_output.sum().backward();
    EXPECT_TRUE(clone->token_embedding_table().grad().defined());
    EXPECT_FALSE(model->token_embedding_table().grad().defined());
    {
      const torch::NoGradGuard no_grad;
      for (const auto& parameter : clone->named_parameters()) {
        const torch::Tensor own = model->named_parameters()[parameter.key()];
        EXPECT_TRUE(parameter.value().equal(own)) << parameter.key();
        EXPECT_NE(parameter.value().data_ptr(), own.data_ptr());
        torch::Tensor(parameter.value()).add_(1.0);
      }
    }
    EXPECT_TRUE(EtcModel(model)
                    ->forward(ToyInput())
                    .long_output.equal(expected.long_output));
    EXPECT_FALSE(
        clone->forward(ToyInput()).long_output.equal(expected.long_output));
  }
}

TEST(CloneTest, HasTheSettingsOfTheOriginal) {
  EtcModel model = Model(false, 0);
  model->set_linear_precision(LinearPrecision::kBfloat16);
  model->set_attention_implementation(AttentionImplementation::kReference);
  model->to(torch::kFloat64);
  model->token_embedding_table().requires_grad_(false);
  model->named_children()["layers"]->train();
  const auto clone = CloneOf(*model);
  EXPECT_EQ(clone->linear_precision(), LinearPrecision::kBfloat16);
  EXPECT_EQ(clone->residual_attention(), ResidualAttention::kMean);
  EXPECT_EQ(clone->score_storage(), ScoreStorage::kRecompute);
  EXPECT_EQ(clone->token_embedding_table().scalar_type(), torch::kFloat64);
  EXPECT_FALSE(clone->token_embedding_table().requires_grad());
  EXPECT_FALSE(clone->is_training());
  EXPECT_TRUE(clone->named_children()["layers"]->is_training());
  for (const auto& module : clone->modules()) {
    if (const auto* attention = module->as<GlobalLocalAttentionImpl>()) {
      EXPECT_EQ(attention->options().implementation,
                AttentionImplementation::kReference);
    }
  }
}

TEST(CloneTest, ComputesItsLayersInSlicesToo) {
  EtcModel model(ToyConfig());
  model->set_residual_attention(ResidualAttention::kMean);
  model->set_layer_slices(LayerSlices{.heads = 1, .tokens = 3});
  const auto clone = CloneOf(*model);
  // Without slices the scores are there.
  EXPECT_FALSE(clone->forward(ToyInput()).scores.l2l.defined());
  clone->set_layer_slices(std::nullopt);
  EXPECT_TRUE(clone->forward(ToyInput()).scores.l2l.defined());
}

TEST(CloneTest, MeasuresTheStatisticsOfTheOriginal) {
  EtcModel model(ToyConfig());
  EXPECT_TRUE(CloneOf(*model)->TakeStatistics().empty());
  model->set_statistics_rows(2);
  const auto clone = CloneOf(*model);
  clone->forward(ToyInput());
  // By layer.
  const std::vector<LayerStatistics> statistics = clone->TakeStatistics();
  ASSERT_EQ(statistics.size(), 2u);
  EXPECT_GT(statistics[1].global_entropy.rows, 0);
  EXPECT_TRUE(model->TakeStatistics().empty());
}

TEST(CloneTest, DrawsNoRandomNumbers) {
  const EtcModel model = Model(false, 0);
  torch::manual_seed(3);
  const torch::Tensor next = torch::rand({4});
  torch::manual_seed(3);
  CloneOf(*model);
  EXPECT_TRUE(torch::rand({4}).equal(next));
}

TEST(CloneTest, TheAttentionModuleGivesTheSame) {
  torch::manual_seed(1);
  GlobalLocalAttention attention(
      GlobalLocalAttentionOptions{.long_hidden_size = 4,
                                  .global_hidden_size = 4,
                                  .num_heads = 2,
                                  .head_size = 2,
                                  .local_radius = 2,
                                  .dropout = 0.0});
  const torch::Tensor longs = torch::randn({1, 6, 4});
  const torch::Tensor globals = torch::randn({1, 3, 4});
  const AttentionInputs inputs = AttentionInputs::Everything(12);
  const auto clone = CloneOf(*attention);
  const torch::Tensor expected = attention(longs, globals, inputs).long_output;
  EXPECT_TRUE(
      clone->forward(longs, globals, inputs).long_output.equal(expected));
  const torch::NoGradGuard no_grad;
  for (torch::Tensor& parameter : attention->parameters()) {
    parameter.zero_();
  }
  EXPECT_TRUE(
      clone->forward(longs, globals, inputs).long_output.equal(expected));
}

TEST(CloneTest, TheAttentionModuleKeepsItsPrecision) {
  GlobalLocalAttention attention(
      GlobalLocalAttentionOptions{.long_hidden_size = 4,
                                  .global_hidden_size = 4,
                                  .num_heads = 2,
                                  .head_size = 2,
                                  .local_radius = 2});
  for (const LinearPrecision precision :
       {LinearPrecision::kFloat32, LinearPrecision::kBfloat16}) {
    attention->set_linear_precision(precision);
    EXPECT_EQ(CloneOf(*attention)->linear_precision(), precision);
  }
}

TEST(CloneTest, RelativePositionsAreTheSame) {
  RelativePositions positions(8, 2, 3);
  const auto clone = CloneOf(*positions);
  EXPECT_TRUE(clone->table().embedding.equal(positions->table().embedding));
  EXPECT_FALSE(
      clone->table().embedding.is_alias_of(positions->table().embedding));
}

// A module as others make them, which LibTorch clones child by child.
class ClassifierImpl : public torch::nn::Cloneable<ClassifierImpl> {
 public:
  ClassifierImpl() { reset(); }
  void reset() override {
    EtcConfig config = ToyConfig();
    config.initializer_range = 0.3;
    encoder_ = register_module("encoder", EtcModel(config));
    logits_ = register_module("logits", torch::nn::Linear(4, 2));
  }
  torch::Tensor forward(const EtcInput& input) {
    return logits_(encoder_->forward(input).global_output);
  }

 private:
  EtcModel encoder_ = nullptr;
  torch::nn::Linear logits_ = nullptr;
};

TEST(CloneTest, WorksWithinOtherModules) {
  torch::manual_seed(1);
  ClassifierImpl classifier;
  classifier.eval();
  const auto clone = CloneOf(classifier);
  const torch::Tensor expected = classifier.forward(ToyInput());
  EXPECT_TRUE(clone->forward(ToyInput()).equal(expected));
  {
    const torch::NoGradGuard no_grad;
    for (torch::Tensor& parameter : classifier.parameters()) {
      parameter.zero_();
    }
  }
  EXPECT_TRUE(clone->forward(ToyInput()).equal(expected));
}

TEST(CloneTest, RefusesModulesThatItsClassDoesNotKnow) {
  EtcModel model = Model(false, 0);
  model->register_module("extra", torch::nn::Linear(2, 2));
  EXPECT_THROW(model->clone(), c10::Error);
}

}  // namespace
}  // namespace etc
