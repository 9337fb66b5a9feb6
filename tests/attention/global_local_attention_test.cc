// The attention module: its special case (ordinary self-attention;
// doc/model.md 3.5 and 12.6), which projections each sharing flag leaves,
// blocked = reference for all flags, gradients by central differences through
// every parameter and the carried scores, and what carrying means
// (doc/model.md 10.2). float64; tolerances are stated where they are used.

#include "attention/global_local_attention.h"

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/serialize.h>
#include <torch/types.h>

#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "attention/pattern.h"
#include "tests/support/attention_case.h"
#include "tests/support/error_message.h"
#include "tests/support/gradient_check.h"
#include "tests/support/random_attention.h"
#include "tests/support/tensor_matchers.h"

namespace etc {
namespace {

constexpr double kTolerance = 1e-10;

GlobalLocalAttentionOptions SmallOptions() {
  return {.long_hidden_size = 6,
          .global_hidden_size = 6,
          .num_heads = 2,
          .head_size = 3,
          .local_radius = 2,
          .relative_vocab_size = 8,
          .share_qkv_projections = false,
          .dropout = 0.0,
          .initializer_range = 0.5};
}

// In float64, biases not zero.
GlobalLocalAttention Make(const GlobalLocalAttentionOptions& options) {
  GlobalLocalAttention attention(options);
  attention->to(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  for (torch::Tensor& parameter : attention->parameters()) {
    if (parameter.dim() == 1 || parameter.size(1) == options.num_heads) {
      parameter.normal_(0.0, 0.3);
    }
  }
  return attention;
}

torch::Tensor Random(std::vector<int64_t> shape) {
  return torch::randn(shape, torch::kFloat64);
}

AttentionInputs RandomInputs(int64_t batch, int64_t longs, int64_t globals,
                             const PatternOptions& options) {
  std::mt19937_64 random(longs * 13 + globals);
  std::vector<AttentionPattern> patterns;
  for (int64_t b = 0; b < batch; ++b) {
    patterns.push_back(RandomMultihopPattern(longs, globals, options, &random));
  }
  return AttentionInputs(patterns);
}

std::vector<GlobalLocalAttentionOptions> AllSharing() {
  std::vector<GlobalLocalAttentionOptions> all;
  for (int flags = 0; flags < 8; ++flags) {
    GlobalLocalAttentionOptions options = SmallOptions();
    options.share_qkv_projections = (flags & 1) != 0;
    options.share_kv_projections = (flags & 2) != 0;
    options.share_output_projection = (flags & 4) != 0;
    all.push_back(options);
  }
  return all;
}

std::vector<std::string> ProjectionNames(GlobalLocalAttention& attention) {
  std::vector<std::string> names;
  for (const auto& child : attention->named_children()) {
    names.push_back(child.key());
  }
  return names;
}

// doc/model.md 3.5, the table of projections.
TEST(GlobalLocalAttentionTest, RegistersEachProjectionOnce) {
  GlobalLocalAttentionOptions options = SmallOptions();
  options.relative_vocab_size = 0;
  GlobalLocalAttention none(options);
  EXPECT_THAT(ProjectionNames(none),
              testing::UnorderedElementsAre(
                  "long_query", "l2l_key", "l2l_value", "l2g_key", "l2g_value",
                  "global_query", "g2g_key", "g2g_value", "g2l_key",
                  "g2l_value", "long_output", "global_output"));
  options.share_kv_projections = true;
  GlobalLocalAttention kv(options);
  EXPECT_THAT(ProjectionNames(kv),
              testing::UnorderedElementsAre(
                  "long_query", "l2l_key", "l2l_value", "global_query",
                  "g2g_key", "g2g_value", "long_output", "global_output"));
  options.share_qkv_projections = true;
  options.share_output_projection = true;
  GlobalLocalAttention all(options);
  EXPECT_THAT(ProjectionNames(all),
              testing::UnorderedElementsAre("long_query", "l2l_key",
                                            "l2l_value", "long_output"));
}

TEST(GlobalLocalAttentionTest, IsSelfAttentionWhenEverythingIsSharedAndSeen) {
  torch::manual_seed(1);
  GlobalLocalAttentionOptions options = SmallOptions();
  options.local_radius = 15;
  options.relative_vocab_size = 0;
  options.share_qkv_projections = true;
  options.share_output_projection = true;
  GlobalLocalAttention attention = Make(options);
  const torch::Tensor longs = Random({3, 12, 6});
  const torch::Tensor globals = Random({3, 6, 6});
  const torch::Tensor all = torch::cat({longs, globals}, 1);

  const auto p = attention->named_parameters();
  const auto heads = [&](const std::string& name) {
    return torch::linear(all, p[name + ".weight"], p[name + ".bias"])
        .reshape({3, 18, 2, 3})
        .transpose(1, 2);
  };
  const torch::Tensor weights = torch::softmax(
      heads("long_query").matmul(heads("l2l_key").transpose(2, 3)) /
          std::sqrt(3.0),
      -1);
  const torch::Tensor expected = torch::linear(
      weights.matmul(heads("l2l_value")).transpose(1, 2).reshape({3, 18, 6}),
      p["long_output.weight"], p["long_output.bias"]);

  for (const AttentionImplementation implementation :
       {AttentionImplementation::kReference,
        AttentionImplementation::kBlocked}) {
    attention->set_implementation(implementation);
    const GlobalLocalAttentionOutput actual =
        attention->forward(longs, globals, AttentionInputs());
    EXPECT_TRUE(
        IsClose(torch::cat({actual.long_output, actual.global_output}, 1),
                expected, kTolerance));
  }
}

// Outputs and carried scores of three layers.
std::vector<torch::Tensor> RunLayers(GlobalLocalAttention& attention,
                                     ResidualAttention mode,
                                     torch::Tensor longs, torch::Tensor globals,
                                     const AttentionInputs& inputs) {
  std::vector<torch::Tensor> all;
  CarriedScores carried{.residual = {.mode = mode}};
  for (int layer = 0; layer < 3; ++layer) {
    const GlobalLocalAttentionOutput output =
        attention->forward(longs, globals, inputs, carried);
    longs = longs + output.long_output;
    globals = globals + output.global_output;
    carried.previous = output.scores;
    all.insert(all.end(), {longs, globals});
    if (mode != ResidualAttention::kOff) {
      all.insert(all.end(), {output.scores.g2g, output.scores.g2l,
                             output.scores.l2g, output.scores.l2l});
    }
  }
  return all;
}

TEST(GlobalLocalAttentionTest, BlockedMatchesReferenceForAllSharing) {
  torch::manual_seed(2);
  for (GlobalLocalAttentionOptions options : AllSharing()) {
    options.residual_gate_init = 0.7;
    GlobalLocalAttention attention = Make(options);
    const AttentionInputs inputs = RandomInputs(
        2, 21, 4,
        {.local_radius = 2, .relative_pos_max_distance = 2, .hard_g2l = true});
    const torch::Tensor longs = Random({2, 21, 6});
    const torch::Tensor globals = Random({2, 4, 6});
    for (const ResidualAttention mode : kEveryResidualAttention) {
      attention->set_implementation(AttentionImplementation::kReference);
      const std::vector<torch::Tensor> expected =
          RunLayers(attention, mode, longs, globals, inputs);
      attention->set_implementation(AttentionImplementation::kBlocked);
      const std::vector<torch::Tensor> actual =
          RunLayers(attention, mode, longs, globals, inputs);
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_TRUE(IsClose(actual[i], expected[i], kTolerance)) << i;
      }
    }
  }
}

TEST(GlobalLocalAttentionTest, HasTheRightGradientsThroughThreeLayers) {
  torch::manual_seed(3);
  GlobalLocalAttentionOptions options = SmallOptions();
  options.initializer_range = 0.3;
  for (const auto& [implementation, mode] :
       {std::pair(AttentionImplementation::kReference,
                  ResidualAttention::kMean),
        std::pair(AttentionImplementation::kReference,
                  ResidualAttention::kGate),
        std::pair(AttentionImplementation::kBlocked, ResidualAttention::kMean),
        std::pair(AttentionImplementation::kBlocked,
                  ResidualAttention::kGate)}) {
    options.implementation = implementation;
    options.residual_gate_init = std::nullopt;
    if (mode == ResidualAttention::kGate) {
      options.residual_gate_init = 0.7;
    }
    GlobalLocalAttention attention = Make(options);
    const AttentionInputs inputs = RandomInputs(
        1, 9, 3, {.local_radius = 2, .relative_pos_max_distance = 2});
    const torch::Tensor longs = Random({1, 9, 6}).requires_grad_(true);
    const torch::Tensor globals = Random({1, 3, 6}).requires_grad_(true);
    std::vector<std::pair<std::string, torch::Tensor>> variables = {
        {"long input", longs}, {"global input", globals}};
    for (const auto& parameter : attention->named_parameters()) {
      variables.emplace_back(parameter.key(), parameter.value());
    }
    EXPECT_TRUE(GradientsMatchDifferences(
        [&, mode = mode] {
          torch::Tensor sum = torch::zeros({}, torch::kFloat64);
          for (const torch::Tensor& tensor :
               RunLayers(attention, mode, longs, globals, inputs)) {
            sum = sum + tensor.sin().sum();
          }
          return sum;
        },
        variables, /*atol=*/1e-6, /*max_elements=*/8));
  }
}

TEST(GlobalLocalAttentionTest, HasAGateForEachBlockAndHead) {
  torch::manual_seed(3);
  GlobalLocalAttentionOptions options = SmallOptions();
  options.residual_gate_init = 0.25;
  GlobalLocalAttention attention(options);
  const auto parameters = attention->named_parameters();
  for (const char* name : {"g2g_gate", "g2l_gate", "l2g_gate", "l2l_gate"}) {
    ASSERT_TRUE(parameters.contains(name)) << name;
    EXPECT_TRUE(parameters[name].equal(torch::full({2}, 0.25))) << name;
  }
  options.has_long_tokens = false;
  options.share_qkv_projections = true;
  options.share_output_projection = true;
  const auto of_bert = GlobalLocalAttention(options)->named_parameters();
  EXPECT_TRUE(of_bert.contains("g2g_gate"));
  EXPECT_FALSE(of_bert.contains("g2l_gate"));

  // Scores that meet a layer without gates.
  GlobalLocalAttention none = Make(SmallOptions());
  const torch::Tensor longs = Random({1, 9, 6});
  const torch::Tensor globals = Random({1, 3, 6});
  CarriedScores carried{.residual = {.mode = ResidualAttention::kGate}};
  carried.previous =
      none->forward(longs, globals, AttentionInputs::Everything(2), carried)
          .scores;
  EXPECT_THAT(MessageOf([&] {
                none->forward(longs, globals, AttentionInputs::Everything(2),
                              carried);
              }),
              testing::HasSubstr("carried scores need gates"));
}

// S_n = [Q_1|...|Q_n] [K_1|...|K_n]^T / sqrt(d): carried sums are what one
// wide head would compute.
TEST(GlobalLocalAttentionTest, CarriesWhatConcatenatedHeadsWouldScore) {
  torch::manual_seed(4);
  GlobalLocalAttentionOptions options = SmallOptions();
  options.relative_vocab_size = 0;
  const int64_t radius = options.local_radius;
  const torch::Tensor longs = Random({2, 7, 6});
  const torch::Tensor globals = Random({2, 3, 6});
  std::vector<torch::Tensor> queries, keys, global_queries, g2l_keys;
  CarriedScores carried{.residual = {.mode = ResidualAttention::kSum}};
  for (int layer = 0; layer < 3; ++layer) {
    GlobalLocalAttention attention = Make(options);
    const auto p = attention->named_parameters();
    const auto heads = [&](const std::string& name, const torch::Tensor& x) {
      return torch::linear(x, p[name + ".weight"], p[name + ".bias"])
          .reshape({2, x.size(1), 2, 3})
          .transpose(1, 2);
    };
    queries.push_back(heads("long_query", longs));
    keys.push_back(heads("l2l_key", longs));
    global_queries.push_back(heads("global_query", globals));
    g2l_keys.push_back(heads("g2l_key", longs));
    carried.previous =
        attention->forward(longs, globals, AttentionInputs(), carried).scores;
  }
  const torch::Tensor l2l =
      torch::cat(queries, -1).matmul(torch::cat(keys, -1).transpose(2, 3)) /
      std::sqrt(3.0);
  for (int64_t i = 0; i < 7; ++i) {
    for (int64_t w = 0; w < 2 * radius + 1; ++w) {
      const int64_t j = i + w - radius;
      const torch::Tensor actual =
          carried.previous.l2l->select(2, i).select(2, w);
      const torch::Tensor expected = j >= 0 && j < 7
                                         ? l2l.select(2, i).select(2, j)
                                         : torch::zeros_like(actual);
      EXPECT_TRUE(IsClose(actual, expected, kTolerance)) << i << ", " << w;
    }
  }
  EXPECT_TRUE(
      IsClose(carried.previous.g2l,
              torch::cat(global_queries, -1)
                      .matmul(torch::cat(g2l_keys, -1).transpose(2, 3)) /
                  std::sqrt(3.0),
              kTolerance));
}

TEST(GlobalLocalAttentionTest, CarriesUnmaskedScores) {
  torch::manual_seed(5);
  GlobalLocalAttention attention = Make(SmallOptions());
  const torch::Tensor longs = Random({1, 8, 6});
  const torch::Tensor globals = Random({1, 3, 6});
  AttentionPattern open = UnrestrictedPattern(8, 3, 2, 2);
  AttentionPattern closed = open;
  closed.long_segment = {0, 0, 0, 1, 1, 1, 2, 2};
  closed.long_example = {0, 0, 0, 0, 0, 1, 1, 1};
  const CarriedScores carried{.residual = {.mode = ResidualAttention::kSum}};
  const GlobalLocalAttentionOutput a = attention->forward(
      longs, globals, AttentionInputs(std::vector{open}), carried);
  const GlobalLocalAttentionOutput b = attention->forward(
      longs, globals, AttentionInputs(std::vector{closed}), carried);
  EXPECT_FALSE(IsClose(a.long_output, b.long_output, 1e-3));
  EXPECT_TRUE(IsClose(a.scores.l2l, b.scores.l2l, 0.0));
  EXPECT_TRUE(IsClose(a.scores.l2g, b.scores.l2g, 0.0));
  EXPECT_TRUE(IsClose(a.scores.g2g, b.scores.g2g, 0.0));
  EXPECT_TRUE(IsClose(a.scores.g2l, b.scores.g2l, 0.0));
}

// Tokens may see fewer others than in the layer below, and no more.
TEST(GlobalLocalAttentionTest, CarriesScoresToTokensThatSeeLess) {
  torch::manual_seed(5);
  GlobalLocalAttention attention = Make(SmallOptions());
  attention->to(torch::kFloat32);
  const torch::Tensor longs = torch::randn({1, 8, 6});
  const torch::Tensor globals = torch::randn({1, 3, 6});
  const AttentionInputs everything = AttentionInputs::Everything(2);
  torch::Tensor ids = torch::ones({1, 8}, torch::kInt64);
  ids.narrow(1, 4, 4).fill_(2);
  const AttentionInputs documents = AttentionInputs::Packed(
      ids, torch::ones({1, 3}, torch::kInt64), /*max_distance=*/2);
  const auto run = [&](const AttentionInputs& first,
                       const AttentionInputs& second) {
    CarriedScores carried{.residual = {.mode = ResidualAttention::kSum}};
    carried.previous = attention(longs, globals, first, carried).scores;
    return attention(longs, globals, second, carried).long_output;
  };
  attention->set_implementation(AttentionImplementation::kReference);
  const torch::Tensor expected = run(everything, documents);
  for (const AttentionImplementation implementation :
       {AttentionImplementation::kReference, AttentionImplementation::kBlocked,
        AttentionImplementation::kKernel}) {
    attention->set_implementation(implementation);
    EXPECT_TRUE(IsClose(run(everything, documents), expected, 1e-5));
    EXPECT_NO_THROW(run(everything, AttentionInputs::Everything(2)));
    EXPECT_THAT(MessageOf([&] { run(documents, everything); }),
                testing::HasSubstr("query 2 of example 0 did not"));
  }
}

TEST(GlobalLocalAttentionTest, MeanInTheFirstLayerEqualsOff) {
  torch::manual_seed(6);
  GlobalLocalAttention attention = Make(SmallOptions());
  const torch::Tensor longs = Random({1, 8, 6});
  const torch::Tensor globals = Random({1, 3, 6});
  const auto run = [&](ResidualAttention mode) {
    return attention->forward(longs, globals, AttentionInputs::Everything(2),
                              {.residual = {.mode = mode}});
  };
  EXPECT_TRUE(run(ResidualAttention::kMean)
                  .long_output.equal(run(ResidualAttention::kOff).long_output));
  EXPECT_FALSE(run(ResidualAttention::kOff).scores.l2l.defined());
}

TEST(GlobalLocalAttentionTest, GivesEachExampleOfABatchWhatItGetsAlone) {
  torch::manual_seed(7);
  GlobalLocalAttention attention = Make(SmallOptions());
  const PatternOptions options = {
      .local_radius = 2, .relative_pos_max_distance = 2, .hard_g2l = true};
  const std::vector<std::pair<int64_t, int64_t>> lengths = {
      {20, 4}, {7, 6}, {1, 1}, {13, 0}};
  std::mt19937_64 random(7);
  std::vector<AttentionPattern> patterns;
  for (const auto& [longs, globals] : lengths) {
    patterns.push_back(RandomMultihopPattern(longs, globals, options, &random));
  }
  const torch::Tensor longs = Random({4, 20, 6});
  const torch::Tensor globals = Random({4, 6, 6});
  for (const AttentionImplementation implementation :
       {AttentionImplementation::kReference,
        AttentionImplementation::kBlocked}) {
    attention->set_implementation(implementation);
    const GlobalLocalAttentionOutput batch =
        attention->forward(longs, globals, AttentionInputs(patterns));
    for (int64_t b = 0; b < 4; ++b) {
      const auto& [length, global_length] = lengths[b];
      const GlobalLocalAttentionOutput alone = attention->forward(
          longs.narrow(0, b, 1).narrow(1, 0, length),
          globals.narrow(0, b, 1).narrow(1, 0, global_length),
          AttentionInputs(std::vector{patterns[b]}));
      EXPECT_TRUE(
          IsClose(batch.long_output.narrow(0, b, 1).narrow(1, 0, length),
                  alone.long_output, kTolerance))
          << b;
      EXPECT_TRUE(IsClose(
          batch.global_output.narrow(0, b, 1).narrow(1, 0, global_length),
          alone.global_output, kTolerance))
          << b;
    }
  }
}

TEST(GlobalLocalAttentionTest, KeepsHiddenSizesOfBothStreams) {
  GlobalLocalAttentionOptions options = SmallOptions();
  options.long_hidden_size = 11;
  options.global_hidden_size = 15;
  options.num_heads = 5;
  options.head_size = 2;
  GlobalLocalAttention attention = Make(options);
  const GlobalLocalAttentionOutput output = attention->forward(
      Random({2, 9, 11}), Random({2, 4, 15}), AttentionInputs::Everything(2));
  EXPECT_EQ(output.long_output.sizes(), at::IntArrayRef({2, 9, 11}));
  EXPECT_EQ(output.global_output.sizes(), at::IntArrayRef({2, 4, 15}));
}

// Gradients are zeros, as torch::nn::Linear's. float32, for the kernels.
TEST(GlobalLocalAttentionTest, KeepsLengthsAndTheGraphOfWhatIsEmpty) {
  const int64_t hidden = SmallOptions().long_hidden_size;
  for (const AttentionImplementation implementation :
       {AttentionImplementation::kReference, AttentionImplementation::kBlocked,
        AttentionImplementation::kKernel}) {
    for (const auto& [batch, longs, globals] :
         {std::tuple(0, 5, 3), std::tuple(1, 0, 0)}) {
      GlobalLocalAttention attention(SmallOptions());
      attention->set_implementation(implementation);
      const GlobalLocalAttentionOutput output =
          attention->forward(torch::randn({batch, longs, hidden}),
                             torch::randn({batch, globals, hidden}),
                             AttentionInputs::Everything(2));
      EXPECT_EQ(output.long_output.sizes(),
                at::IntArrayRef({batch, longs, hidden}));
      EXPECT_EQ(output.global_output.sizes(),
                at::IntArrayRef({batch, globals, hidden}));
      (output.long_output.sum() + output.global_output.sum()).backward();
      const auto parameters = attention->named_parameters();
      for (const char* name : {"long_output.weight", "global_output.bias"}) {
        ASSERT_TRUE(parameters[name].grad().defined()) << name;
        EXPECT_TRUE(parameters[name].grad().eq(0).all().item<bool>()) << name;
      }
    }
  }
}

TEST(GlobalLocalAttentionTest, DropsOnlyInTraining) {
  GlobalLocalAttentionOptions options = SmallOptions();
  options.dropout = 0.5;
  GlobalLocalAttention attention = Make(options);
  const torch::Tensor longs = Random({1, 9, 6});
  const torch::Tensor globals = Random({1, 3, 6});
  const auto run = [&] {
    return attention->forward(longs, globals, AttentionInputs::Everything(2))
        .long_output;
  };
  EXPECT_FALSE(run().equal(run()));
  attention->eval();
  EXPECT_TRUE(run().equal(run()));
}

// The global softmax has the second number of the generator.
TEST(GlobalLocalAttentionTest, DropsTheSameWeightsWithEveryImplementation) {
  torch::manual_seed(6);
  GlobalLocalAttentionOptions options = SmallOptions();
  options.dropout = 0.5;
  GlobalLocalAttention attention = Make(options);
  const torch::Tensor longs = Random({1, 9, 6});
  const torch::Tensor globals = Random({1, 3, 6});
  const auto run = [&](AttentionImplementation implementation) {
    attention->set_implementation(implementation);
    torch::manual_seed(7);
    return attention->forward(longs, globals, AttentionInputs::Everything(2));
  };
  const auto expected = run(AttentionImplementation::kReference);
  const auto actual = run(AttentionImplementation::kBlocked);
  EXPECT_TRUE(IsClose(actual.long_output, expected.long_output, kTolerance));
  EXPECT_TRUE(
      IsClose(actual.global_output, expected.global_output, kTolerance));
}

// All of it is seen, with the float32 kernels: 1e-5.
TEST(GlobalLocalAttentionTest, TheLargestRadiusIsOfEverything) {
  torch::manual_seed(9);
  const torch::Tensor longs = torch::randn({1, 30, 6});
  const torch::Tensor globals = torch::randn({1, 3, 6});
  std::vector<torch::Tensor> outputs;
  for (const int64_t radius : {int64_t{29}, kMostLocalRadius}) {
    torch::manual_seed(1);
    GlobalLocalAttentionOptions options = SmallOptions();
    options.local_radius = radius;
    outputs.push_back(GlobalLocalAttention(options)(
                          longs, globals, AttentionInputs::Everything(2))
                          .long_output);
  }
  EXPECT_TRUE(IsClose(outputs[1], outputs[0], 1e-5));
}

TEST(GlobalLocalAttentionTest, IsClonedSavedLoadedMovedAndPrinted) {
  torch::manual_seed(8);
  for (GlobalLocalAttentionOptions options : AllSharing()) {
    options.causal = true;
    GlobalLocalAttention attention = Make(options);
    const torch::Tensor longs = Random({2, 9, 6});
    const torch::Tensor globals = Random({2, 3, 6});
    const AttentionInputs inputs = AttentionInputs::Everything(2);
    const auto run = [&](GlobalLocalAttentionImpl& module) {
      return module.forward(longs, globals, inputs).long_output;
    };
    const torch::Tensor expected = run(*attention);
    const auto clone = std::dynamic_pointer_cast<GlobalLocalAttentionImpl>(
        attention->clone(torch::Device(torch::kCPU)));
    ASSERT_NE(clone, nullptr);
    EXPECT_EQ(clone->parameters().size(), attention->parameters().size());
    EXPECT_TRUE(run(*clone).equal(expected));

    std::stringstream file;
    torch::save(attention, file);
    GlobalLocalAttention loaded = Make(options);
    torch::load(loaded, file);
    EXPECT_TRUE(run(*loaded).equal(expected));

    attention->to(torch::kFloat32);
    EXPECT_TRUE(IsClose(attention(longs.to(torch::kFloat32),
                                  globals.to(torch::kFloat32), inputs)
                            .long_output,
                        expected, 1e-5));
    std::ostringstream text;
    text << attention;
    EXPECT_THAT(text.str(),
                testing::StartsWith(
                    "etc::GlobalLocalAttention(long_hidden_size=6, "
                    "global_hidden_size=6, num_heads=2, head_size=3, "
                    "local_radius=2, relative_vocab_size=8, causal=true, "
                    "dropout=0)"));
    EXPECT_THAT(text.str(),
                testing::HasSubstr("(long_relative): etc::RelativePositions("
                                   "ids=8, heads=2, head_size=3)"));
  }
}

TEST(GlobalLocalAttentionTest, RejectsWhatCannotBe) {
  const auto make = [](auto change) {
    GlobalLocalAttentionOptions options = SmallOptions();
    change(options);
    return GlobalLocalAttention(options);
  };
  EXPECT_THROW(make([](auto& o) { o.num_heads = 0; }), c10::Error);
  EXPECT_THROW(make([](auto& o) { o.head_size = 0; }), c10::Error);
  for (const int64_t radius : {int64_t{0}, kMostLocalRadius + 1,
                               std::numeric_limits<int64_t>::max()}) {
    EXPECT_THROW(make([&](auto& o) { o.local_radius = radius; }), c10::Error);
    EXPECT_THAT(
        MessageOf([&] {
          AttentionInputs(std::vector{UnrestrictedPattern(9, 3, radius, 2)});
        }),
        testing::HasSubstr("local_radius should be from 1 to 1048576"));
    EXPECT_THROW(AttentionInputs::Everything(2).Softmax(QuerySide::kLong, 1, 9,
                                                        3, radius),
                 c10::Error);
    EXPECT_THROW(
        AttentionInputs::Everything(2).Tensors(1, 9, 3, radius, torch::kCPU),
        c10::Error);
  }
  EXPECT_THROW(make([](auto& o) { o.dropout = 1.0; }), c10::Error);
  EXPECT_THROW(make([](auto& o) { o.relative_vocab_size = -1; }), c10::Error);
  EXPECT_THROW(make([](auto& o) {
                 o.global_hidden_size = 7;
                 o.share_kv_projections = true;
               }),
               c10::Error);
  GlobalLocalAttention attention = Make(SmallOptions());
  EXPECT_THROW(attention->forward(Random({1, 4, 5}), Random({1, 2, 6}),
                                  AttentionInputs::Everything(2)),
               c10::Error);
  EXPECT_THROW(attention->forward(Random({1, 4, 6}), Random({2, 2, 6}),
                                  AttentionInputs::Everything(2)),
               c10::Error);
}

}  // namespace
}  // namespace etc
