// EtcInput::inspect: hidden states, probabilities and scores of an encoder, and
// its statistics (set_statistics_rows).
// Checked: outputs and gradients are the same to the bit with and without the
// request, in all modes, storages, with dropout, gradient checkpointing and
// output rows; probabilities in float32 by the kernels and by blocks equal
// those of the reference in double to 1e-6; scores that are gone are refused.
// tests/attention/inspection_test.cc compares one layer with the definition.

#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/bfloat16.h"
#include "etc/bert_input.h"
#include "etc/model.h"
#include "tests/support/error_message.h"
#include "tests/support/score_storages.h"
#include "tests/support/tensor_matchers.h"
#include "tests/support/toy_model.h"

namespace etc {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kLayers = 3;

EtcConfig Config(bool bert) {
  EtcConfig config = bert ? ToyBertConfig(/*positions=*/8) : ToyConfig();
  config.num_hidden_layers = kLayers;
  config.initializer_range = 0.3;
  return config;
}

// Two examples, the second shorter.
EtcInput Input(bool bert) {
  if (bert) {
    const torch::Tensor mask = torch::ones({2, 7}, torch::kBool);
    mask[1].narrow(0, 4, 3).fill_(false);
    return BertInput(torch::arange(14).remainder(11).reshape({2, 7}), {}, mask);
  }
  EtcInput input;
  input.token_ids = torch::arange(14).remainder(11).reshape({2, 7});
  input.global_token_ids = torch::arange(6).reshape({2, 3});
  input.attention = AttentionInputs(std::vector{
      UnrestrictedPattern(7, 3, 2, 2), UnrestrictedPattern(5, 2, 2, 2)});
  return input;
}

Inspection Everything() {
  return {.hidden_states = true,
          .probabilities_of = {0, 1, 2},
          .scores_of = {0, 1, 2}};
}

EtcModel Model(const EtcConfig& config) {
  torch::manual_seed(1);
  EtcModel model(config);
  return model;
}

struct Result {
  EtcOutput output;
  std::vector<torch::Tensor> numbers;
};

// Outputs, and gradients where there are any.
Result RunModel(EtcModel model, EtcInput input, const Inspection& inspect) {
  input.inspect = inspect;
  model->zero_grad();
  torch::manual_seed(2);
  Result result = {.output = model->forward(input)};
  result.numbers = {result.output.long_output.detach(),
                    result.output.global_output.detach()};
  if (torch::GradMode::is_enabled()) {
    (result.output.long_output.sin().sum() +
     result.output.global_output.sin().sum())
        .backward();
    for (const torch::Tensor& parameter : model->parameters()) {
      if (parameter.grad().defined()) {
        result.numbers.push_back(parameter.grad().clone());
      }
    }
  }
  return result;
}

void ExpectSameBits(EtcModel model, const EtcInput& input) {
  const Result without = RunModel(model, input, {});
  const Result with = RunModel(model, input, Everything());
  ASSERT_EQ(with.numbers.size(), without.numbers.size());
  for (size_t i = 0; i < with.numbers.size(); ++i) {
    EXPECT_TRUE(with.numbers[i].equal(without.numbers[i])) << i;
  }
  const Inspected& inspected = with.output.inspected;
  EXPECT_EQ(inspected.long_states.size(), size_t{kLayers + 1});
  EXPECT_EQ(inspected.global_states.size(), size_t{kLayers + 1});
  EXPECT_EQ(inspected.layers.size(), size_t{kLayers});
  EXPECT_TRUE(without.output.inspected.long_states.empty());
  EXPECT_TRUE(without.output.inspected.layers.empty());
}

TEST(EncoderInspectionTest, ChangesNoBitOfOutputsAndGradients) {
  for (const char* mode : {"off", "sum", "mean"}) {
    for (const int64_t period : {0, 1, 2}) {
      for (const ScoreStorage storage :
           StoragesOf(ResidualAttentionFromName(mode),
                      AttentionImplementation::kAuto, period > 0)) {
        SCOPED_TRACE(testing::Message()
                     << mode << ", storage " << static_cast<int>(storage)
                     << ", period " << period);
        EtcConfig config = Config(/*bert=*/false);
        config.residual_attention = mode;
        config.hidden_dropout_prob = 0.2;
        config.attention_probs_dropout_prob = 0.3;
        config.grad_checkpointing_period = period;
        config.sublayer = period == 1 ? "pre_norm" : "post_norm";
        EtcModel model = Model(config);
        model->set_score_storage(storage);
        EtcInput input = Input(/*bert=*/false);
        ExpectSameBits(model, input);
        input.outputs = {.longs = torch::zeros({0}, torch::kInt64),
                         .globals = torch::tensor({1}, torch::kInt64)};
        ExpectSameBits(model, input);
        model->eval();
        const torch::NoGradGuard no_grad;
        ExpectSameBits(model, Input(/*bert=*/false));
      }
    }
  }
}

// Gates begin at 0.5, a decay is 0.7.
TEST(EncoderStatisticsTest, ChangeNoBitAndAreTakenOnce) {
  for (const char* mode : {"off", "sum", "mean", "decay", "gate"}) {
    for (const int64_t period : {0, 1, 2}) {
      for (const ScoreStorage storage :
           StoragesOf(ResidualAttentionFromName(mode),
                      AttentionImplementation::kAuto, period > 0)) {
        SCOPED_TRACE(testing::Message()
                     << mode << ", storage " << static_cast<int>(storage)
                     << ", period " << period);
        EtcConfig config = Config(/*bert=*/false);
        config.residual_attention = mode;
        config.residual_decay = 0.7;
        config.residual_gate_init = 0.5;
        config.hidden_dropout_prob = 0.2;
        config.attention_probs_dropout_prob = 0.3;
        config.grad_checkpointing_period = period;
        EtcModel model = Model(config);
        model->set_score_storage(storage);
        const EtcInput input = Input(/*bert=*/false);
        const Result without = RunModel(model, input, {});
        EXPECT_TRUE(model->TakeStatistics().empty());
        model->set_statistics_rows(256);
        const Result with = RunModel(model, input, {});
        ASSERT_EQ(with.numbers.size(), without.numbers.size());
        for (size_t i = 0; i < with.numbers.size(); ++i) {
          EXPECT_TRUE(with.numbers[i].equal(without.numbers[i])) << i;
        }
        EXPECT_EQ(model->TakeStatistics().size(), size_t{kLayers});
        EXPECT_TRUE(model->TakeStatistics().empty());
      }
    }
  }
}

// Moments of numbers that are 0 for pairs that do not see each other.
void ExpectMomentsOf(const NumberMoments& moments, const torch::Tensor& all) {
  const torch::Tensor exact = all.to(torch::kFloat64);
  EXPECT_NEAR(moments.sum, exact.sum().item<double>(), 1e-3);
  EXPECT_NEAR(moments.sum_of_squares, exact.square().sum().item<double>(),
              1e-3);
}

TEST(EncoderStatisticsTest, AreThoseOfWhatInspectionGives) {
  for (const bool bert : {false, true}) {
    for (const char* mode : {"off", "sum", "mean", "decay", "gate"}) {
      SCOPED_TRACE(testing::Message() << bert << ", " << mode);
      EtcConfig config = Config(bert);
      config.residual_attention = mode;
      config.residual_decay = 0.7;
      config.residual_gate_init = 0.5;
      EtcModel model = Model(config);
      model->eval();
      const torch::NoGradGuard no_grad;
      model->set_statistics_rows(256);
      const Inspected inspected =
          RunModel(model, Input(bert), Everything()).output.inspected;
      const std::vector<LayerStatistics> layers = model->TakeStatistics();
      ASSERT_EQ(layers.size(), size_t{kLayers});
      for (int64_t n = 0; n < kLayers; ++n) {
        const LayerStatistics& layer = layers[static_cast<size_t>(n)];
        const AttentionView& view = inspected.layers.at(n);
        const auto expect = [&](BlockStatistics LayerStatistics::*block,
                                torch::Tensor FourBlocks::*numbers) {
          ExpectMomentsOf((layer.*block).new_scores, view.new_scores.*numbers);
          const torch::Tensor& carried = view.carried_scores.*numbers;
          EXPECT_EQ((layer.*block).carried_scores.count,
                    carried.defined() ? (layer.*block).new_scores.count : 0);
          if (carried.defined()) {
            ExpectMomentsOf((layer.*block).carried_scores, carried);
          }
        };
        expect(&LayerStatistics::g2g, &FourBlocks::g2g);
        expect(&LayerStatistics::g2l, &FourBlocks::g2l);
        expect(&LayerStatistics::l2g, &FourBlocks::l2g);
        expect(&LayerStatistics::l2l, &FourBlocks::l2l);
        const torch::Tensor p =
            torch::cat({view.probabilities.g2g, view.probabilities.g2l}, -1);
        EXPECT_NEAR(layer.global_entropy.sum,
                    -torch::xlogy(p, p).sum().item<double>(), 1e-4);
        // Two heads; 7 + 5 and 3 + 2 tokens, 7 + 4 of BERT.
        EXPECT_EQ(layer.global_entropy.rows, bert ? 22 : 10);
        EXPECT_EQ(layer.long_entropy.rows, bert ? 0 : 24);
      }
    }
  }
}

// 4 of 14 long rows: 1, 5, 8 and 12, of which the last is padding of the second
// example; all 6 global ones but padding.
TEST(EncoderStatisticsTest, AreOfRowsSpreadOverTheBatch) {
  EtcModel model = Model(Config(/*bert=*/false));
  model->set_statistics_rows(4);
  EtcInput input = Input(/*bert=*/false);
  input.inspect = {
      .scores_of = {0},
      .rows = {.longs = torch::tensor({1, 5, 8, 12}, torch::kInt64)}};
  const FourBlocks scores =
      model->forward(input).inspected.layers.at(0).new_scores;
  const LayerStatistics layer = model->TakeStatistics().at(0);
  EXPECT_EQ(layer.long_entropy.rows, 2 * 3);
  ExpectMomentsOf(layer.l2l.new_scores, scores.l2l);
  ExpectMomentsOf(layer.l2g.new_scores, scores.l2g);
  // 0, 2, 3 and 5 of 6, the last one padding.
  EXPECT_EQ(layer.global_entropy.rows, 2 * 3);
}

void ExpectClose(const FourBlocks& actual, const FourBlocks& expected,
                 double tolerance) {
  EXPECT_TRUE(IsClose(actual.g2g, expected.g2g, tolerance));
  EXPECT_TRUE(IsClose(actual.g2l, expected.g2l, tolerance));
  EXPECT_TRUE(IsClose(actual.l2g, expected.l2g, tolerance));
  EXPECT_TRUE(IsClose(actual.l2l, expected.l2l, tolerance));
}

TEST(EncoderInspectionTest, ProbabilitiesAreThoseOfTheReferenceInDouble) {
  for (const bool bert : {false, true}) {
    for (const char* mode : {"off", "sum", "mean"}) {
      EtcConfig config = Config(bert);
      config.residual_attention = mode;
      EtcModel exact = Model(config);
      exact->eval();
      exact->to(torch::kFloat64);
      exact->set_attention_implementation(AttentionImplementation::kReference);
      const Inspected expected =
          RunModel(exact, Input(bert), Everything()).output.inspected;
      EtcModel model = Model(config);
      for (const AttentionImplementation implementation :
           {AttentionImplementation::kBlocked,
            AttentionImplementation::kKernel}) {
        for (const ScoreStorage storage :
             StoragesOf(ResidualAttentionFromName(mode), implementation)) {
          SCOPED_TRACE(testing::Message() << bert << ", " << mode << ", "
                                          << static_cast<int>(implementation)
                                          << ", " << static_cast<int>(storage));
          model->set_attention_implementation(implementation);
          model->set_score_storage(storage);
          const Inspected actual =
              RunModel(model, Input(bert), Everything()).output.inspected;
          for (int64_t layer = 0; layer < kLayers; ++layer) {
            const AttentionView& view = actual.layers.at(layer);
            const AttentionView& exact_view = expected.layers.at(layer);
            ExpectClose(view.probabilities, exact_view.probabilities, 1e-6);
            ExpectClose(view.new_scores, exact_view.new_scores, 1e-5);
            ExpectClose(view.carried_scores, exact_view.carried_scores, 1e-5);
          }
        }
      }
    }
  }
}

// By hidden states, and by the scores that the next layer was given.
TEST(EncoderInspectionTest, LayersFollowFromEachOther) {
  EtcConfig config = Config(/*bert=*/false);
  config.residual_attention = "sum";
  EtcModel model = Model(config);
  model->eval();
  const torch::NoGradGuard no_grad;
  const EtcOutput output =
      RunModel(model, Input(/*bert=*/false), Everything()).output;
  const Inspected& inspected = output.inspected;
  EXPECT_TRUE(inspected.long_states[kLayers].equal(output.long_output));
  EXPECT_TRUE(inspected.global_states[kLayers].equal(output.global_output));
  const auto sum = [](const AttentionView& view, bool has_carried) {
    return has_carried ? view.new_scores.l2l + view.carried_scores.l2l
                       : view.new_scores.l2l;
  };
  EXPECT_FALSE(inspected.layers.at(0).carried_scores.l2l.defined());
  for (const int64_t layer : {0, 1}) {
    EXPECT_TRUE(IsClose(inspected.layers.at(layer + 1).carried_scores.l2l,
                        sum(inspected.layers.at(layer), layer > 0), 1e-6));
  }
  // A model of one layer, with the parameters of the first of three.
  config.num_hidden_layers = 1;
  EtcModel one(config);
  for (auto& parameter : one->named_parameters()) {
    parameter.value().copy_(model->named_parameters()[parameter.key()]);
  }
  one->eval();
  EXPECT_TRUE(one->forward(Input(/*bert=*/false))
                  .long_output.equal(inspected.long_states[1]));
}

// A visit sees each layer as it is asked for by name, and the layer below once
// more; also in training with gradient checkpointing, which runs layers again.
TEST(EncoderInspectionTest, VisitsEachLayerAndTheOneBelow) {
  for (const bool bert : {false, true}) {
    for (const char* mode : {"off", "sum", "mean", "decay", "gate"}) {
      for (const int64_t period : {0, 2}) {
        SCOPED_TRACE(testing::Message() << bert << mode << period);
        EtcConfig config = Config(bert);
        config.residual_attention = mode;
        config.residual_decay = 0.7;
        config.residual_gate_init = 0.5;
        config.grad_checkpointing_period = period;
        config.sublayer = period == 2 ? "pre_norm" : "post_norm";
        EtcModel model = Model(config);
        model->train();
        const Result without = RunModel(model, Input(bert), Everything());
        const Inspected& expected = without.output.inspected;
        int64_t visits = 0;
        Inspection inspect;
        inspect.visit = [&](const LayerVisit& visit) {
          EXPECT_EQ(visit.layer, visits++);
          EXPECT_EQ(static_cast<bool>(visit.below), visit.layer > 0);
          for (const QuerySide side : {QuerySide::kLong, QuerySide::kGlobal}) {
            if (bert && side == QuerySide::kLong) {
              continue;
            }
            const auto expect = [&](const SoftmaxView& view, int64_t layer,
                                    double tolerance) {
              const FourBlocks& p = expected.layers.at(layer).probabilities;
              const bool is_long = side == QuerySide::kLong;
              EXPECT_TRUE(IsClose(view.probabilities.own,
                                  is_long ? p.l2l : p.g2g, tolerance));
              EXPECT_TRUE(IsClose(view.probabilities.other,
                                  is_long ? p.l2g : p.g2l, tolerance));
            };
            expect(InspectAttention(visit.here(side)), visit.layer, 0);
            if (visit.below) {
              expect(InspectPastAttention(visit.below(side)), visit.layer - 1,
                     1e-6);
            }
          }
        };
        const Result with = RunModel(model, Input(bert), inspect);
        EXPECT_EQ(visits, kLayers);
        ASSERT_EQ(with.numbers.size(), without.numbers.size());
        for (size_t i = 0; i < with.numbers.size(); ++i) {
          EXPECT_TRUE(with.numbers[i].equal(without.numbers[i])) << i;
        }
      }
    }
  }
}

// Also of tokens whose outputs the last layer does not compute.
TEST(EncoderInspectionTest, GivesChosenHeadsAndRowsOfChosenLayers) {
  EtcModel model = Model(Config(/*bert=*/false));
  EtcInput input = Input(/*bert=*/false);
  const FourBlocks all = RunModel(model, input, Everything())
                             .output.inspected.layers.at(2)
                             .probabilities;
  input.outputs = {.longs = torch::zeros({0}, torch::kInt64),
                   .globals = torch::tensor({0}, torch::kInt64)};
  const torch::Tensor rows = torch::tensor({9, 3}, torch::kInt64);
  const Inspected some =
      RunModel(model, input,
               {.probabilities_of = {2},
                .heads = {1},
                .rows = {.longs = rows,
                         .globals = torch::tensor({4}, torch::kInt64)}})
          .output.inspected;
  EXPECT_EQ(some.layers.size(), 1u);
  EXPECT_TRUE(some.long_states.empty());
  const FourBlocks& blocks = some.layers.at(2).probabilities;
  EXPECT_FALSE(some.layers.at(2).new_scores.l2l.defined());
  EXPECT_TRUE(IsClose(blocks.l2l[0][0], all.l2l[1][1][2], 1e-6));
  EXPECT_TRUE(IsClose(blocks.l2g[1][0], all.l2g[0][1][3], 1e-6));
  EXPECT_TRUE(IsClose(blocks.g2g[0][0], all.g2g[1][1][1], 1e-6));
  EXPECT_EQ(blocks.g2l.sizes(), at::IntArrayRef({1, 1, 7}));
}

TEST(EncoderInspectionTest, IsOfProbabilitiesBeforeDropout) {
  EtcConfig config = Config(/*bert=*/false);
  config.attention_probs_dropout_prob = 0.9;
  EtcModel model = Model(config);
  model->train();
  const EtcOutput output =
      RunModel(model, Input(/*bert=*/false), Everything()).output;
  const FourBlocks& p = output.inspected.layers.at(0).probabilities;
  EXPECT_TRUE(
      IsClose((p.l2l.sum(-1) + p.l2g.sum(-1))[0], torch::ones({2, 7}), 1e-6));
}

TEST(EncoderInspectionTest, WorksInInferenceMode) {
  EtcConfig config = Config(/*bert=*/false);
  config.residual_attention = "sum";
  EtcModel model = Model(config);
  EtcInput input = Input(/*bert=*/false);
  input.inspect = Everything();
  const FourBlocks expected =
      model->forward(input).inspected.layers.at(2).probabilities;
  const c10::InferenceMode inference;
  ExpectClose(model->forward(input).inspected.layers.at(2).probabilities,
              expected, 1e-6);
}

// Roundings of 8 bits in the projections.
TEST(EncoderInspectionTest, IsCloseWithLinearLayersInBfloat16) {
  if (kernels::Bfloat16ProductsOfThisCpu() ==
      kernels::Bfloat16Products::kNone) {
    GTEST_SKIP() << "this CPU has no products of bfloat16";
  }
  EtcModel model = Model(Config(/*bert=*/false));
  const auto l2l = [&] {
    return RunModel(model, Input(/*bert=*/false), Everything())
        .output.inspected.layers.at(1)
        .probabilities.l2l;
  };
  const torch::Tensor exact = l2l();
  model->set_linear_precision(LinearPrecision::kBfloat16);
  const torch::Tensor rounded = l2l();
  EXPECT_TRUE(IsClose(rounded, exact, 0.02));
  EXPECT_FALSE(rounded.equal(exact));
}

TEST(EncoderInspectionTest, RefusesToReadScoresThatAreGone) {
  EtcConfig config = Config(/*bert=*/false);
  config.residual_attention = "sum";
  EtcModel model = Model(config);
  for (const ScoreStorage storage :
       {ScoreStorage::kReverse, ScoreStorage::kRecompute,
        ScoreStorage::kStore}) {
    model->set_score_storage(storage);
    const EtcOutput output = model->forward(Input(/*bert=*/false));
    const torch::Tensor before = output.scores.l2l->detach().clone();
    (output.long_output.sum() + output.global_output.sum()).backward();
    if (storage == ScoreStorage::kStore) {
      EXPECT_TRUE(output.scores.l2l->equal(before));
      continue;
    }
    for (const ScoreTensor* scores : {&output.scores.g2g, &output.scores.g2l,
                                      &output.scores.l2g, &output.scores.l2l}) {
      EXPECT_TRUE(scores->defined());
      EXPECT_THAT(MessageOf([&] { (*scores)->sum(); }),
                  HasSubstr("of 3 layers, are gone"));
    }
  }
}

TEST(EncoderInspectionTest, RefusesLayersHeadsAndRowsThatAreNotThere) {
  EtcModel model = Model(Config(/*bert=*/false));
  const auto message = [&](const Inspection& inspect) {
    EtcInput input = Input(/*bert=*/false);
    input.inspect = inspect;
    return MessageOf([&] { model->forward(input); });
  };
  EXPECT_THAT(message({.probabilities_of = {3}}),
              HasSubstr("inspect.probabilities_of should be in [0, 3), but one "
                        "is 3"));
  EXPECT_THAT(message({.scores_of = {-1}}),
              HasSubstr("inspect.scores_of should be in [0, 3), but one is "
                        "-1"));
  EXPECT_THAT(message({.heads = {0, 2}}),
              HasSubstr("inspect.heads should be in [0, 2), but one is 2"));
  EXPECT_THAT(message({.probabilities_of = {0},
                       .rows = {.longs = torch::tensor({14}, torch::kInt64)}}),
              HasSubstr("should be in [0, 14), but are from 14 to 14"));
}

}  // namespace
}  // namespace etc
