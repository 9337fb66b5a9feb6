// An encoder that is asked for the outputs of a few tokens against one that
// gives all of them: the same outputs and gradients, in double to 1e-12, by the
// fused kernels in float32 to 1e-5.

#include "attention/output_rows.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <optional>
#include <string>
#include <vector>

#include "etc/bert_input.h"
#include "etc/model.h"
#include "tests/support/score_storages.h"
#include "tests/support/tensor_matchers.h"
#include "tests/support/toy_model.h"

namespace etc {
namespace {

torch::Tensor Rows(const std::vector<int64_t>& rows) {
  return torch::tensor(rows, torch::kInt64);
}

OutputRows Some() {
  return {.longs = Rows({8, 0, 3, 13}), .globals = Rows({5, 1})};
}

// Two examples of the toy model.
EtcInput TwoExamples() {
  EtcInput input;
  input.token_ids = torch::arange(14).remainder(11).reshape({2, 7});
  input.global_token_ids = torch::arange(6).reshape({2, 3});
  input.attention = AttentionInputs(std::vector{
      UnrestrictedPattern(7, 3, 2, 2), UnrestrictedPattern(5, 2, 2, 2)});
  return input;
}

EtcModel SeededModel(const EtcConfig& config) {
  torch::manual_seed(1);
  EtcModel model(config);
  model->to(torch::kFloat64);
  return model;
}

struct Result {
  EtcOutput output;
  std::vector<std::string> names;
  std::vector<torch::Tensor> gradients;  // zeros where there are none
};

torch::Tensor Loss(const torch::Tensor& longs, const torch::Tensor& globals) {
  return longs.sin().sum() + (globals * globals).sum();
}

Result Run(EtcModel model, EtcInput input, const OutputRows& rows,
           bool asks_for_them) {
  if (asks_for_them) {
    input.outputs = rows;
  }
  model->zero_grad();
  Result result = {.output = model->forward(input)};
  if (!asks_for_them) {
    result.output.long_output = RowsOf(result.output.long_output, rows.longs);
    result.output.global_output =
        RowsOf(result.output.global_output, rows.globals);
  }
  Loss(result.output.long_output, result.output.global_output).backward();
  for (const auto& parameter : model->named_parameters()) {
    const torch::Tensor& gradient = parameter.value().grad();
    result.names.push_back(parameter.key());
    result.gradients.push_back(gradient.defined()
                                   ? gradient.clone()
                                   : torch::zeros_like(parameter.value()));
  }
  return result;
}

void ExpectTheSame(EtcModel model, const EtcInput& input,
                   const OutputRows& rows, double tolerance) {
  const Result all = Run(model, input, rows, /*asks_for_them=*/false);
  const Result some = Run(model, input, rows, /*asks_for_them=*/true);
  EXPECT_TRUE(
      IsClose(some.output.long_output, all.output.long_output, tolerance));
  EXPECT_TRUE(
      IsClose(some.output.global_output, all.output.global_output, tolerance));
  for (size_t i = 0; i < all.names.size(); ++i) {
    EXPECT_TRUE(IsClose(some.gradients[i], all.gradients[i], 10 * tolerance))
        << all.names[i];
  }
}

void ExpectTheSameEverywhere(const EtcConfig& config, const EtcInput& input,
                             const OutputRows& rows) {
  for (const ScoreStorage storage :
       StoragesOf(ResidualAttentionFromName(config.residual_attention),
                  AttentionImplementation::kAuto,
                  config.grad_checkpointing_period > 0)) {
    EtcModel model = SeededModel(config);
    model->set_score_storage(storage);
    for (const AttentionImplementation implementation :
         {AttentionImplementation::kReference,
          AttentionImplementation::kBlocked}) {
      if (implementation == AttentionImplementation::kReference &&
          storage != ScoreStorage::kStore) {
        continue;
      }
      SCOPED_TRACE(static_cast<int>(storage));
      model->set_attention_implementation(implementation);
      ExpectTheSame(model, input, rows, 1e-12);
    }
    model->set_attention_implementation(AttentionImplementation::kAuto);
    model->to(torch::kFloat32);
    ExpectTheSame(model, input, rows, 1e-5);
  }
}

TEST(OutputRowsTest, AreThoseOfTheWholeOutput) {
  for (const char* mode : {"off", "sum", "mean"}) {
    for (const bool variant : {false, true}) {
      for (const int64_t period : {0, 1}) {
        SCOPED_TRACE(std::string(mode) + ", " + std::to_string(variant) + ", " +
                     std::to_string(period));
        EtcConfig config = ToyConfig();
        config.residual_attention = mode;
        config.sublayer = variant ? "pre_norm" : "post_norm";
        config.final_layer_norm = variant;
        config.share_qkv_projections = variant;
        config.grad_checkpointing_period = period;
        ExpectTheSameEverywhere(config, TwoExamples(), Some());
      }
    }
  }
}

TEST(OutputRowsTest, ATokenMayBeAskedForTwice) {
  const OutputRows twice = {.longs = Rows({3, 3, 0, 3}),
                            .globals = Rows({5, 1, 5})};
  for (const char* mode : {"off", "sum"}) {
    EtcConfig config = ToyConfig();
    config.residual_attention = mode;
    ExpectTheSameEverywhere(config, TwoExamples(), twice);
  }
}

TEST(OutputRowsTest, DistinctRowsAscend) {
  EXPECT_TRUE(DistinctRows(Rows({4, 0, 4, 1}), 5).equal(Rows({0, 1, 4})));
  EXPECT_TRUE(DistinctRows(Rows({}), 5).equal(Rows({})));
  EXPECT_FALSE(DistinctRows(Rows({1, 0, 1}), 2).defined());
  EXPECT_FALSE(DistinctRows(torch::Tensor(), 5).defined());
  EXPECT_THROW(DistinctRows(Rows({5}), 5), c10::Error);
}

TEST(OutputRowsTest, AStreamMayHaveNone) {
  for (const char* mode : {"off", "sum", "mean"}) {
    for (const bool shared : {false, true}) {
      SCOPED_TRACE(std::string(mode) + ", " + std::to_string(shared));
      EtcConfig config = ToyConfig();
      config.residual_attention = mode;
      config.share_qkv_projections = shared;
      ExpectTheSameEverywhere(config, TwoExamples(),
                              {.longs = Rows({}), .globals = Rows({0, 3})});
      ExpectTheSameEverywhere(config, TwoExamples(), {.longs = Rows({})});
      ExpectTheSameEverywhere(config, TwoExamples(), {.globals = Rows({})});
    }
  }
}

// Parameters that no output depends on: their gradients are not even zeros,
// which an optimizer would take for an update.
TEST(OutputRowsTest, WhatNoOutputNeedsIsLeftOut) {
  EtcConfig config = ToyConfig();
  config.residual_attention = "sum";
  EtcModel model = SeededModel(config);
  EtcInput input = TwoExamples();
  input.outputs = {.longs = Rows({}), .globals = Rows({0})};
  const EtcOutput output = model->forward(input);
  EXPECT_EQ(output.long_output.sizes(), at::IntArrayRef({0, 4}));
  EXPECT_EQ(output.scores.l2l->size(2), 0);
  EXPECT_EQ(output.scores.g2g->size(2), 3);
  output.global_output.sum().backward();
  const auto parameters = model->named_parameters();
  for (const std::string name : {"long_query.weight", "l2l_key.weight",
                                 "long_output.weight", "long_relative.bias"}) {
    EXPECT_FALSE(parameters["layers.1.attention." + name].grad().defined())
        << name;
    EXPECT_TRUE(parameters["layers.0.attention." + name].grad().defined())
        << name;
  }
}

TEST(OutputRowsTest, AreThoseOfBert) {
  for (const char* mode : {"off", "sum", "mean"}) {
    SCOPED_TRACE(mode);
    EtcConfig config = ToyBertConfig(/*positions=*/8);
    config.residual_attention = mode;
    EtcModel model = SeededModel(config);
    const EtcInput input =
        BertInput(torch::arange(14).remainder(11).reshape({2, 7}));
    const OutputRows rows = {.globals = Rows({0, 7, 2, 12})};
    ExpectTheSame(model, input, rows, 1e-12);
    model->to(torch::kFloat32);
    ExpectTheSame(model, input, rows, 1e-5);
  }
}

TEST(OutputRowsTest, RefusesRowsThatAreNotThere) {
  EtcModel model = SeededModel(ToyConfig());
  const auto run = [&](const torch::Tensor& rows) {
    EtcInput input = TwoExamples();
    input.outputs.longs = rows;
    return model->forward(input);
  };
  EXPECT_NO_THROW(run(Rows({13})));
  EXPECT_THROW(run(Rows({14})), c10::Error);
  EXPECT_THROW(run(Rows({-1})), c10::Error);
  EXPECT_NO_THROW(run(torch::zeros({2}, torch::kInt32)));
  EXPECT_THROW(run(torch::zeros({2})), c10::Error);
  EXPECT_THROW(run(torch::zeros({1, 2}, torch::kInt64)), c10::Error);
}

}  // namespace
}  // namespace etc
