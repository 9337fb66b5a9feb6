// The encoder against the toy model of doc/model.md 13.3 in float64:
// embeddings, one layer, and two layers in five variants. Tolerance: the spec
// gives six digits, so 1e-6; float32 has to agree to 1e-5.

#include "etc/model.h"

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "attention/global_local_attention.h"
#include "base/bfloat16.h"
#include "base/linear.h"
#include "etc/embedding.h"
#include "tests/support/error_message.h"
#include "tests/support/tensor_matchers.h"
#include "tests/support/toy_model.h"

namespace etc {
namespace {

using testing::HasSubstr;

constexpr double kTolerance = 1e-6;

torch::Tensor Rows(const std::vector<double>& values) {
  return torch::tensor(values, torch::kFloat64).reshape({1, -1, 4});
}

struct Expected {
  std::string name;
  torch::Tensor longs, globals;
};

void ExpectOutputs(const EtcConfig& config, const EtcInput& input,
                   const Expected& expected) {
  SCOPED_TRACE(expected.name);
  for (const AttentionImplementation implementation :
       {AttentionImplementation::kAuto, AttentionImplementation::kReference,
        AttentionImplementation::kBlocked}) {
    EtcModel model = ToyModel(config);
    model->eval();
    model->set_attention_implementation(implementation);
    EtcOutput output = model->forward(input);
    EXPECT_TRUE(IsClose(output.long_output, expected.longs, kTolerance));
    EXPECT_TRUE(IsClose(output.global_output, expected.globals, kTolerance));
    model->to(torch::kFloat32);
    output = model->forward(input);
    EXPECT_TRUE(IsClose(output.long_output, expected.longs, 1e-5));
    EXPECT_TRUE(IsClose(output.global_output, expected.globals, 1e-5));
  }
}

TEST(EtcModelTest, NamesEveryVariableOfTheSpec) {
  EtcModel model(ToyConfig());
  EXPECT_EQ(ToyParameters().size(), 84u);
  EXPECT_EQ(model->named_parameters().size(), 84u);
  for (const ToyParameter& parameter : ToyParameters()) {
    EXPECT_TRUE(model->named_parameters().contains(parameter.name))
        << parameter.name;
  }
  EXPECT_NEAR(ToyVariable(1, {2})[0].item<double>() * 0.3, 0.29215429, 1e-8);
  EXPECT_NEAR(ToyVariable(1, {2})[1].item<double>() * 0.3, 0.24773550, 1e-8);
  EXPECT_NEAR(ToyVariable(5, {1})[0].item<double>() * 0.1 + 1, 1.06569866,
              1e-8);
}

TEST(EtcModelTest, EmbedsAsTheSpec) {
  EtcEmbedding embedding(ToyConfig());
  embedding->to(torch::kFloat64);
  embedding->eval();
  {
    const torch::NoGradGuard no_grad;
    const auto parameters = embedding->named_parameters();
    for (const ToyParameter& parameter : ToyParameters()) {
      if (parameter.name.rfind("embedding.", 0) == 0) {
        torch::Tensor tensor = parameters[parameter.name.substr(10)];
        tensor.copy_(ToyValue(parameter, tensor.sizes()));
      }
    }
  }
  const EmbeddedInput output = embedding->forward(ToyInput());
  EXPECT_TRUE(IsClose(
      output.long_input,
      Rows({-0.746414, 1.221583,  1.046055,  -1.305430, -0.974662, 1.157320,
            1.136591,  -1.096106, -1.685760, 0.262141,  1.079999,  0.594106,
            -1.551315, -0.155166, 0.804874,  1.150677,  -1.488775, -0.252655,
            0.723982,  1.265241,  -1.573251, -0.115525, 0.835902,  1.102357,
            -1.573251, -0.115525, 0.835902,  1.102357}),
      kTolerance));
  EXPECT_TRUE(IsClose(
      output.global_input,
      Rows({-1.332080, -0.609735, 0.277179, 1.220180, -1.332080, -0.609735,
            0.277179, 1.220180, -1.303651, -0.633192, 0.252401, 1.240717}),
      kTolerance));
}

TEST(EtcModelTest, MatchesOneLayerOfTheSpec) {
  // A model of one layer, its parameters those of the first of two.
  EtcModel two = ToyModel(ToyConfig());
  EtcConfig config = ToyConfig();
  config.num_hidden_layers = 1;
  EtcModel one(config);
  one->to(torch::kFloat64);
  {
    const torch::NoGradGuard no_grad;
    for (auto& parameter : one->named_parameters()) {
      parameter.value().copy_(two->named_parameters()[parameter.key()]);
    }
  }
  one->eval();
  const EtcOutput output = one->forward(ToyInput());
  EXPECT_TRUE(IsClose(
      output.long_output,
      Rows({-0.792064, 1.000579,  0.803066,  -1.312209, -1.025230, 0.949251,
            0.892822,  -1.140729, -1.825250, 0.098138,  0.866215,  0.397909,
            -1.685975, -0.313156, 0.593353,  0.917849,  -1.620054, -0.406723,
            0.514094,  1.021823,  -1.706829, -0.278737, 0.620426,  0.878548,
            -1.707428, -0.277719, 0.621279,  0.877319}),
      kTolerance));
  EXPECT_TRUE(IsClose(
      output.global_output,
      Rows({-1.410989, -0.627140, 0.309735, 1.235275, -1.405512, -0.631903,
            0.304858, 1.239467, -1.360318, -0.670155, 0.265953, 1.271789}),
      kTolerance));
}

// Scores and context of the first layer, before any residual connection.
TEST(EtcModelTest, MatchesScoresAndAttentionOfTheSpec) {
  EtcModel model = ToyModel(ToyConfig());
  model->eval();
  const auto children = model->named_modules();
  auto embedding =
      std::dynamic_pointer_cast<EtcEmbeddingImpl>(children["embedding"]);
  auto attention = std::dynamic_pointer_cast<GlobalLocalAttentionImpl>(
      children["layers.0.attention"]);
  ASSERT_TRUE(embedding && attention);
  const EtcInput input = ToyInput();
  const EmbeddedInput embedded = embedding->forward(input);
  const GlobalLocalAttentionOutput output = attention->forward(
      embedded.long_input, embedded.global_input, input.attention,
      {.residual = {.mode = ResidualAttention::kSum}});
  // The spec prints masked scores with -10000 added; carried ones are without.
  const auto expect_scores = [](const torch::Tensor& actual,
                                const std::vector<double>& printed) {
    torch::Tensor expected = torch::tensor(printed, torch::kFloat64);
    expected = expected + expected.lt(-5000).to(torch::kFloat64) * 10000.0;
    EXPECT_TRUE(IsClose(actual, expected, kTolerance));
  };
  expect_scores(torch::cat({(*output.scores.l2l)[0][0][3],
                            (*output.scores.l2g)[0][0][3]}),
                {0.056116, 0.064659, 0.063310, 0.029024, -9999.946211,
                 -0.139050, -0.064726, -10000.136437});
  expect_scores(
      torch::cat(
          {(*output.scores.g2g)[0][1][1], (*output.scores.g2l)[0][1][1]}),
      {0.116015, -0.019441, -10000.108989, -10000.076614, -10000.015900,
       0.349696, 0.330102, 0.317555, -9999.817451, -9999.817451});
  EXPECT_TRUE(IsClose(output.long_output[0][0],
                      Rows({-0.143866, -0.242482, -0.308279, -0.332352})[0][0],
                      kTolerance));
  EXPECT_TRUE(IsClose(output.global_output[0][0],
                      Rows({-0.045046, -0.054729, -0.057004, -0.051564})[0][0],
                      kTolerance));
}

TEST(EtcModelTest, MatchesAllVariantsOfTheSpec) {
  EtcConfig config = ToyConfig();
  ExpectOutputs(
      config, ToyInput(),
      {"plain Post-LN",
       Rows({-0.927226, 1.149309,  0.948101,  -1.247305, -1.147924, 1.079819,
             1.025238,  -1.046682, -1.815045, 0.226770,  0.967468,  0.456468,
             -1.691095, -0.193345, 0.716273,  0.984224,  -1.627600, -0.296553,
             0.638028,  1.098617,  -1.711400, -0.154677, 0.743465,  0.940127,
             -1.712649, -0.152195, 0.745259,  0.937198}),
       Rows({-1.380558, -0.585845, 0.404636, 1.367446, -1.367642, -0.597346,
             0.392470, 1.378006, -1.320686, -0.638730, 0.351544, 1.412778})});
  ExpectOutputs(
      config, ToyInput(/*hard_g2l=*/false),
      {"soft g2l",
       Rows({-0.927614, 1.149213,  0.948248,  -1.246990, -1.148302, 1.079671,
             1.025357,  -1.046299, -1.815039, 0.226619,  0.967396,  0.456677,
             -1.691063, -0.193404, 0.716230,  0.984292,  -1.627572, -0.296595,
             0.637994,  1.098662,  -1.711274, -0.154927, 0.743289,  0.940417,
             -1.712511, -0.152470, 0.745066,  0.937517}),
       Rows({-1.379144, -0.587117, 0.403302, 1.368617, -1.379883, -0.586507,
             0.404103, 1.367955, -1.335873, -0.625570, 0.364541, 1.401979})});
  config.residual_attention = "sum";
  ExpectOutputs(
      config, ToyInput(),
      {"RealFormer sum",
       Rows({-0.936723, 1.146962,  0.951682,  -1.239541, -1.135383, 1.084662,
             1.021256,  -1.059326, -1.814918, 0.223545,  0.965929,  0.460923,
             -1.688247, -0.198490, 0.712516,  0.990088,  -1.623738, -0.302186,
             0.633546,  1.104689,  -1.708442, -0.160519, 0.739345,  0.946904,
             -1.711210, -0.155065, 0.743243,  0.940533}),
       Rows({-1.381577, -0.584951, 0.405643, 1.366579, -1.368584, -0.596534,
             0.393392, 1.377228, -1.320686, -0.638730, 0.351544, 1.412778})});
  config.residual_attention = "mean";
  ExpectOutputs(
      config, ToyInput(),
      {"RealFormer mean",
       Rows({-0.893119, 1.157374,  0.934999,  -1.274609, -1.111764, 1.093427,
             1.013648,  -1.082694, -1.814823, 0.221428,  0.964935,  0.463820,
             -1.687113, -0.200524, 0.711035,  0.992394,  -1.622534, -0.303930,
             0.632159,  1.106562,  -1.706067, -0.165153, 0.736070,  0.952260,
             -1.707676, -0.162030, 0.738334,  0.948603}),
       Rows({-1.382155, -0.584521, 0.406367, 1.366013, -1.369314, -0.595943,
             0.394181, 1.376589, -1.320686, -0.638730, 0.351544, 1.412778})});
  config.residual_attention = "off";
  config.sublayer = "pre_norm";
  ExpectOutputs(
      config, ToyInput(),
      {"plain Pre-LN",
       Rows({-0.917995, 1.033542,  0.867007,  -1.451254, -1.095563, 1.022977,
             1.006989,  -1.203426, -1.627360, 0.272995,  1.041839,  0.512097,
             -1.425448, -0.076761, 0.825207,  1.110185,  -1.350944, -0.134868,
             0.805782,  1.299984,  -1.417021, 0.023887,  0.939627,  1.156357,
             -1.414927, 0.016504,  0.923767,  1.134167}),
       Rows({-1.368483, -0.613319, 0.306898, 1.279181, -1.491183, -0.755353,
             0.164753, 1.156163, -1.190152, -0.640537, 0.125207, 1.010888})});
}

TEST(EtcModelTest, TogglesResidualAttentionWithoutTouchingParameters) {
  EtcConfig config = ToyConfig();
  config.residual_attention = "sum";
  EtcModel model = ToyModel(config);
  model->eval();
  const torch::Tensor with = model->forward(ToyInput()).long_output;
  const size_t parameters = model->named_parameters().size();
  model->set_residual_attention(ResidualAttention::kOff);
  EXPECT_EQ(model->config().residual_attention, "off");
  EXPECT_EQ(model->named_parameters().size(), parameters);
  const torch::Tensor without = model->forward(ToyInput()).long_output;
  EXPECT_FALSE(IsClose(with, without, 1e-3));
  EXPECT_TRUE(
      without.equal(ToyModel(ToyConfig())->forward(ToyInput()).long_output));
  model->set_residual_attention(ResidualAttention::kSum);
  EXPECT_TRUE(model->forward(ToyInput()).long_output.equal(with));
}

// Rounding has 8 bits, and the toy model's states are around 1.
TEST(EtcModelTest, IsCloseWithLinearLayersInBfloat16) {
  if (kernels::Bfloat16ProductsOfThisCpu() ==
      kernels::Bfloat16Products::kNone) {
    GTEST_SKIP() << "this CPU has no products of bfloat16";
  }
  for (const int64_t period : {0, 1}) {
    EtcConfig config = ToyConfig();
    config.grad_checkpointing_period = period;
    EtcModel model = ToyModel(config);
    model->to(torch::kFloat32);
    std::vector<torch::Tensor> outputs;
    std::vector<torch::Tensor> gradients;
    for (const LinearPrecision precision :
         {LinearPrecision::kFloat32, LinearPrecision::kBfloat16}) {
      model->set_linear_precision(precision);
      model->zero_grad();
      const EtcOutput output = model->forward(ToyInput());
      outputs.push_back(output.long_output.detach());
      (output.long_output.sin().sum() + output.global_output.sin().sum())
          .backward();
      std::vector<torch::Tensor> flat;
      for (const auto& parameter : model->named_parameters()) {
        const torch::Tensor& gradient = parameter.value().grad();
        ASSERT_TRUE(gradient.defined()) << parameter.key();
        ASSERT_EQ(gradient.scalar_type(), torch::kFloat32) << parameter.key();
        flat.push_back(gradient.flatten().clone());
      }
      gradients.push_back(torch::cat(flat));
    }
    EXPECT_TRUE(IsClose(outputs[1], outputs[0], 0.05));
    EXPECT_FALSE(outputs[1].equal(outputs[0]));
    EXPECT_LT((gradients[1] - gradients[0]).norm().item<double>(),
              0.05 * gradients[0].norm().item<double>());
  }
}

// Settings that change between the forward and the backward pass, which
// computes layers again: it has the residual attention and the storage of the
// forward pass, and refuses other modes of modules.
TEST(EtcModelTest, ComputesLayersAgainAsTheForwardPassDid) {
  for (const int64_t period : {1, 2}) {
    SCOPED_TRACE(period);
    EtcConfig config = ToyConfig();
    config.num_hidden_layers = 4;
    config.hidden_dropout_prob = 0.3;
    config.attention_probs_dropout_prob = 0.3;
    config.initializer_range = 0.3;
    config.residual_attention = "sum";
    config.grad_checkpointing_period = period;
    torch::manual_seed(1);
    EtcModel model(config);
    const auto gradient = [&](const std::function<void()>& change) {
      model->zero_grad();
      torch::manual_seed(2);
      const torch::Tensor loss =
          model->forward(ToyInput()).long_output.sin().sum();
      change();
      loss.backward();
      return model->token_embedding_table().grad().clone();
    };
    const torch::Tensor expected = gradient([] {});
    EXPECT_TRUE(gradient([&] {
                  model->set_residual_attention(ResidualAttention::kMean);
                }).equal(expected));
    model->set_residual_attention(ResidualAttention::kSum);
    EXPECT_TRUE(gradient([&] {
                  model->set_score_storage(ScoreStorage::kStore);
                }).equal(expected));
    model->set_score_storage(ScoreStorage::kReverse);
    const auto message = [&](const std::function<void()>& change) {
      return MessageOf([&] { gradient(change); });
    };
    EXPECT_THAT(message([&] { model->eval(); }),
                HasSubstr("the training mode (train(), eval()) changed"));
    model->train();
    EXPECT_THAT(message([&] {
                  model->set_linear_precision(LinearPrecision::kBfloat16);
                }),
                HasSubstr("the precision of linear layers changed"));
    model->set_linear_precision(LinearPrecision::kFloat32);
    EXPECT_THAT(message([&] {
                  model->set_attention_implementation(
                      AttentionImplementation::kReference);
                }),
                HasSubstr("the implementation of attention changed"));
    model->set_attention_implementation(AttentionImplementation::kAuto);
    // A pass in evaluation mode between the two is fine.
    EXPECT_TRUE(gradient([&] {
                  model->eval();
                  model->forward(ToyInput());
                  model->train();
                }).equal(expected));
  }
}

// The graph keeps what it computes again, and nothing else does.
TEST(EtcModelTest, ComputesLayersAgainOnceTheModelIsGone) {
  for (const bool in_slices : {false, true}) {
    std::vector<torch::Tensor> gradients;
    for (const bool is_gone : {false, true}) {
      std::weak_ptr<torch::nn::Module> computed_again;
      {
        torch::manual_seed(1);
        EtcModel model(ToyConfig());
        if (in_slices) {
          model->set_layer_slices(LayerSlices{.heads = 1, .tokens = 3});
          computed_again = model->named_children()["embedding"];
        } else {
          model->set_grad_checkpointing_period(1);
          computed_again = model.ptr();
        }
        const torch::Tensor table = model->token_embedding_table();
        const torch::Tensor loss =
            model->forward(ToyInput()).long_output.sin().sum();
        if (is_gone) {
          model = nullptr;
        }
        EXPECT_FALSE(computed_again.expired()) << in_slices;
        loss.backward();
        gradients.push_back(table.grad());
      }
      EXPECT_TRUE(computed_again.expired()) << in_slices;
    }
    EXPECT_TRUE(torch::equal(gradients[0], gradients[1])) << in_slices;
  }
}

TEST(EtcModelTest, UsesPositionsSegmentsAndAdders) {
  EtcConfig config = ToyConfig();
  config.max_absolute_position_embeddings = 7;
  EtcModel model(config);
  model->eval();
  EtcInput input = ToyInput();
  const torch::Tensor before = model->forward(input).long_output;
  input.position_ids = torch::arange(7).unsqueeze(0);
  EXPECT_TRUE(model->forward(input).long_output.equal(before));
  input.position_ids = torch::arange(7).flip(0).unsqueeze(0);
  EXPECT_FALSE(model->forward(input).long_output.equal(before));
  input.position_ids = torch::Tensor();
  input.segment_ids = torch::ones({1, 7}, torch::kInt64);
  input.global_segment_ids = torch::zeros({1, 3}, torch::kInt64);
  EXPECT_TRUE(model->forward(input).long_output.equal(before));
  input.segment_ids[0][2] = 2;
  EXPECT_FALSE(model->forward(input).long_output.equal(before));
  input.segment_ids = torch::Tensor();
  input.long_embedding_adder =
      torch::ones({1, 7, 4}).mul(torch::arange(4).to(torch::kFloat32));
  EXPECT_FALSE(model->forward(input).long_output.equal(before));
}

TEST(EtcModelTest, GivesSegmentsOutsideOfTheTableNothing) {
  EtcModel model = ToyModel(ToyConfig());
  model->eval();
  EtcInput input = ToyInput();
  input.segment_ids = torch::full({1, 7}, 3, torch::kInt64);
  EXPECT_NO_THROW(model->forward(input));
  const torch::Tensor outside = model->forward(input).long_output;
  input.segment_ids.fill_(-5);
  EXPECT_TRUE(model->forward(input).long_output.equal(outside));
}

TEST(EtcModelTest, GivesEachExampleOfABatchWhatItGetsAlone) {
  torch::manual_seed(1);
  for (const char* mode : {"off", "sum", "mean"}) {
    EtcConfig config = ToyConfig();
    config.residual_attention = mode;
    EtcModel model = ToyModel(config);
    model->eval();
    const auto pattern = [](int64_t longs, int64_t globals) {
      return UnrestrictedPattern(longs, globals, 2, 2);
    };
    EtcInput batch;
    batch.token_ids = torch::randint(0, 11, {2, 9}, torch::kInt64);
    batch.global_token_ids = torch::randint(0, 11, {2, 4}, torch::kInt64);
    batch.attention =
        AttentionInputs(std::vector{pattern(9, 2), pattern(5, 4)});
    const EtcOutput together = model->forward(batch);
    EtcInput alone;
    alone.token_ids = batch.token_ids.narrow(0, 1, 1).narrow(1, 0, 5);
    alone.global_token_ids = batch.global_token_ids.narrow(0, 1, 1);
    alone.attention = AttentionInputs(std::vector{pattern(5, 4)});
    const EtcOutput single = model->forward(alone);
    EXPECT_TRUE(IsClose(together.long_output.narrow(0, 1, 1).narrow(1, 0, 5),
                        single.long_output, 1e-12));
    EXPECT_TRUE(IsClose(together.global_output.narrow(0, 1, 1),
                        single.global_output, 1e-12));
  }
}

TEST(EtcModelTest, WorksWithoutGlobalTokens) {
  EtcConfig config = ToyConfig();
  config.residual_attention = "sum";
  EtcModel model(config);
  EtcInput input;
  input.token_ids = torch::ones({2, 5}, torch::kInt64);
  input.global_token_ids = torch::zeros({2, 0}, torch::kInt64);
  const EtcOutput output = model->forward(input);
  EXPECT_EQ(output.global_output.sizes(), at::IntArrayRef({2, 0, 4}));
  output.long_output.sum().backward();
  EXPECT_TRUE(torch::isfinite(output.long_output).all().item<bool>());
}

// Without positions of its own a text whose order nothing says would give the
// same output when it is reversed.
TEST(EtcModelTest, ReadsTheOrderOfATextWithoutAPattern) {
  torch::manual_seed(1);
  EtcConfig config = ToyConfig();
  config.initializer_range = 0.3;
  EtcModel model(config);
  model->eval();
  EtcInput text{.token_ids = torch::tensor({{1, 2, 3, 4, 5, 6}}, torch::kInt64),
                .global_token_ids = torch::tensor({{7, 8}}, torch::kInt64)};
  EtcInput reversed = text;
  reversed.token_ids = text.token_ids.flip(1);
  for (const AttentionImplementation implementation :
       {AttentionImplementation::kKernel, AttentionImplementation::kBlocked,
        AttentionImplementation::kReference}) {
    model->set_attention_implementation(implementation);
    const torch::Tensor forwards = model->forward(text).long_output;
    EXPECT_GT(MaxError(model->forward(reversed).long_output.flip(1), forwards),
              1e-3);
    EtcInput with_pattern = text;
    with_pattern.attention = AttentionInputs({UnrestrictedPattern(6, 2, 2, 2)});
    EXPECT_TRUE(model->forward(with_pattern).long_output.equal(forwards));
    // A caller that asks for no order gets none.
    EtcInput without_order = text;
    without_order.attention = AttentionInputs::Everything(0);
    EXPECT_GT(MaxError(model->forward(without_order).long_output, forwards),
              1e-3);
  }
}

// Scores that grow with the layers are measured where they are carried, also of
// a stream without an output; and tell how exact gradients are without copies.
TEST(EtcModelTest, MeasuresTheScoresThatSayHowExactReversalIs) {
  for (const double scale : {1.0, 100.0}) {
    torch::manual_seed(1);
    EtcConfig config = ToyConfig();
    config.num_hidden_layers = 24;
    config.initializer_range = 0.3;
    config.residual_attention = "sum";
    EtcModel model(config);
    {
      const torch::NoGradGuard no_grad;
      for (const auto& parameter : model->named_parameters()) {
        if (parameter.key().find("query.weight") != std::string::npos) {
          torch::Tensor(parameter.value()).mul_(scale);
        }
      }
    }
    const auto gradient = [&](ScoreStorage storage) {
      model->set_score_storage(storage);
      model->zero_grad();
      model->forward(ToyInput()).long_output.sin().sum().backward();
      return model->token_embedding_table().grad().clone();
    };
    EXPECT_EQ(model->largest_score(), 0.0);
    const torch::Tensor exact = gradient(ScoreStorage::kStore);
    EXPECT_EQ(model->largest_score(), 0.0);
    model->set_measures_scores(true);
    const torch::Tensor reversed = gradient(ScoreStorage::kReverse);
    const double largest = model->largest_score();
    EXPECT_GT(largest, 2.0 * scale);
    EXPECT_LE(MaxError(reversed, exact),
              1e-6 * std::max(largest, 10.0) * exact.abs().max().item<double>())
        << "at scores of " << largest;
    EXPECT_TRUE(gradient(ScoreStorage::kRecompute).equal(exact));
    // Without long outputs the last layer has scores of the global stream only;
    // the layer before it has those of both streams.
    EtcInput input = ToyInput();
    model = EtcModel(std::dynamic_pointer_cast<EtcModelImpl>(model->clone()));
    input.outputs.longs = torch::zeros({0}, torch::kInt64);
    model->forward(input);
    EXPECT_GT(model->largest_score(), 0.8 * largest);
    EXPECT_LE(model->largest_score(), largest);
  }
}

// Queries (3, 0) and keys (-2, 0) in each head: each layer adds -6 / sqrt(2) to
// the scores of all pairs.
TEST(EtcModelTest, MeasuresTheMagnitudeOfNegativeScores) {
  EtcConfig config = ToyConfig();
  config.residual_attention = "sum";
  EtcModel model(config);
  {
    const torch::NoGradGuard no_grad;
    for (const auto& parameter : model->named_parameters()) {
      const std::string& name = parameter.key();
      const auto is_of = [&](const char* projection) {
        return name.find(projection) != std::string::npos;
      };
      torch::Tensor value = parameter.value();
      if (is_of("_query.") || is_of("_key.") || is_of("_relative.")) {
        value.zero_();
      }
      if (is_of("_query.bias")) {
        value.copy_(torch::tensor({3.0, 0.0, 3.0, 0.0}));
      } else if (is_of("_key.bias")) {
        value.copy_(torch::tensor({-2.0, 0.0, -2.0, 0.0}));
      }
    }
  }
  model->set_measures_scores(true);
  for (const bool in_slices : {false, true}) {
    const auto measured =
        std::dynamic_pointer_cast<EtcModelImpl>(model->clone());
    if (in_slices) {
      measured->set_layer_slices(LayerSlices{.heads = 1, .tokens = 3});
    }
    measured->forward(ToyInput());
    EXPECT_NEAR(measured->largest_score(), 2 * 6 / std::sqrt(2.0), 1e-5)
        << in_slices;
  }
}

// A final LayerNorm gives each token the mean and the deviation of its own
// stream's bias and scale.
TEST(EtcModelTest, EndsEachStreamWithItsOwnNorm) {
  EtcConfig config = ToyConfig();
  config.sublayer = "pre_norm";
  config.final_layer_norm = true;
  config.initializer_range = 0.3;
  torch::manual_seed(1);
  EtcModel model(config);
  {
    const torch::NoGradGuard no_grad;
    const auto parameters = model->named_parameters();
    const auto fill = [&](const char* name, double value) {
      torch::Tensor(parameters[name]).fill_(value);
    };
    fill("long_final_norm.weight", 2.0);
    fill("long_final_norm.bias", 5.0);
    fill("global_final_norm.weight", 3.0);
    fill("global_final_norm.bias", -1.0);
  }
  const EtcOutput output = model->forward(ToyInput());
  const auto expect_moments = [](const torch::Tensor& states, double mean,
                                 double deviation) {
    const torch::Tensor centred = states - mean;
    EXPECT_LT(centred.mean(-1).abs().max().item<double>(), 1e-4);
    const torch::Tensor found = centred.square().mean(-1).sqrt();
    EXPECT_LT((found - deviation).abs().max().item<double>(), 1e-4);
  };
  expect_moments(output.long_output, 5.0, 2.0);
  expect_moments(output.global_output, -1.0, 3.0);
}

TEST(EtcModelTest, HasGradientsOfGradientsInFloat64ByTheReference) {
  EtcModel model = ToyModel(ToyConfig());
  model->set_attention_implementation(AttentionImplementation::kReference);
  const auto gradient = [&](torch::ScalarType type) {
    EtcInput input = ToyInput();
    input.long_embedding_adder =
        torch::ones({1, 7, 4}).to(type).requires_grad_(true);
    const torch::Tensor loss = model->forward(input).long_output.sin().sum();
    return torch::autograd::grad({loss}, {input.long_embedding_adder}, {},
                                 /*retain_graph=*/true,
                                 /*create_graph=*/true)[0];
  };
  EXPECT_TRUE(gradient(torch::kFloat64).requires_grad());
  model->to(torch::kFloat32);
  EXPECT_THAT(MessageOf([&] { gradient(torch::kFloat32); }),
              HasSubstr("use float64 for them"));
}

TEST(EtcModelTest, NamesTheIdsThatAreOutOfRange) {
  EtcConfig config = ToyConfig();
  config.max_absolute_position_embeddings = 5;
  EtcModel model(config);
  EtcInput input = ToyInput();
  const auto message = [&] {
    return MessageOf([&] { model->forward(input); });
  };
  EXPECT_THAT(message(), HasSubstr("position_ids should be in [0, 5), but "
                                   "range from 0 to 6"));
  input.position_ids = torch::zeros({1, 7}, torch::kInt64);
  EXPECT_EQ(message(), "nothing was thrown");
  input.global_position_ids = torch::full({1, 3}, 5, torch::kInt64);
  EXPECT_THAT(message(), HasSubstr("global_position_ids should be in [0, 5)"));
  input.token_ids[0][3] = 11;
  EXPECT_THAT(message(), testing::StartsWith("token_ids should be in [0, 11)"));
  input = ToyInput();
  input.position_ids = torch::zeros({1, 7}, torch::kInt64);
  input.global_token_ids.fill_(-1);
  EXPECT_THAT(message(),
              testing::StartsWith("global_token_ids should be in [0, 11)"));
}

TEST(EtcModelTest, RejectsWhatDoesNotFit) {
  EtcModel model(ToyConfig());
  const auto expect_rejected = [&](auto change) {
    EtcInput input = ToyInput();
    EXPECT_NO_THROW(model->forward(input));
    change(input);
    EXPECT_THROW(model->forward(input), c10::Error);
  };
  expect_rejected([](EtcInput& i) { i.token_ids[0][0] = 11; });
  expect_rejected([](EtcInput& i) { i.token_ids[0][0] = -1; });
  expect_rejected([](EtcInput& i) { i.token_ids = i.token_ids[0]; });
  expect_rejected([](EtcInput& i) {
    i.global_token_ids = i.global_token_ids.expand({2, 3});
  });
  expect_rejected([](EtcInput& i) {
    i.segment_ids = torch::ones({1, 6}, torch::kInt64);
  });
  expect_rejected([](EtcInput& i) {
    i.position_ids = torch::zeros({1, 7}, torch::kInt64);
  });
  expect_rejected([](EtcInput& i) {
    i.global_embedding_adder = torch::zeros({1, 3, 5});
  });
  const auto as_float = [](torch::Tensor& t) { t = t.to(torch::kFloat32); };
  expect_rejected([&](EtcInput& i) { as_float(i.token_ids); });
  expect_rejected([&](EtcInput& i) { as_float(i.global_token_ids); });
  expect_rejected([](EtcInput& i) { i.segment_ids = torch::ones({1, 7}); });
  expect_rejected([](EtcInput& i) {
    i.global_segment_ids = torch::ones({1, 3});
  });
  expect_rejected([](EtcInput& i) {
    i.long_embedding_adder = torch::zeros({1, 7, 4}, torch::kFloat64);
  });
  expect_rejected([](EtcInput& i) {
    i.long_embedding_adder = torch::zeros({1, 7, 4}, torch::kInt64);
  });
  expect_rejected([](EtcInput& i) { i.outputs.longs = torch::ones({1}); });
  expect_rejected([](EtcInput& i) {
    i.outputs.globals = torch::full({1}, 3, torch::kInt64);
  });
  EtcConfig config = ToyConfig();
  config.num_attention_heads = 3;
  EXPECT_THROW(EtcModel{config}, c10::Error);
  config = ToyConfig();
  config.relative_vocab_size = 7;  // needs 2m + 4 = 8
  EXPECT_THROW(EtcModel{config}, c10::Error);
  EXPECT_THROW(ResidualAttentionFromName("on"), c10::Error);
  for (const int64_t period : {-1, 1'000'000}) {
    EXPECT_THROW(model->set_grad_checkpointing_period(period), c10::Error);
  }
  EXPECT_EQ(model->config().grad_checkpointing_period,
            ToyConfig().grad_checkpointing_period);
}

}  // namespace
}  // namespace etc
