// Blocked sparse attention against the dense reference, both in float64, over
// lengths that straddle the radius, the window and the block, with none, one
// and many globals, random multi-hop patterns, hard and soft, examples shorter
// than the batch, and all residual modes over three layers. Tolerance: the two
// add the same numbers in another order, 1e-10 (issue of the operation: float64
// rounding is about 1e-15 for each).
//
// Gradients of the reference are checked by differences in
// dense_attention_test.cc and global_local_attention_test.cc; here those of the
// blocked form are compared with them.

#include "attention/sparse_attention.h"

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>

#include <random>
#include <string>
#include <vector>

#include "attention/attention_inputs.h"
#include "attention/attention_problem.h"
#include "attention/backends/backend.h"
#include "attention/backends/blocked/blocked_backend.h"
#include "attention/backends/reference/dense_attention.h"
#include "attention/backends/reference/reference_backend.h"
#include "tests/support/attention_case.h"
#include "tests/support/error_message.h"
#include "tests/support/random_attention.h"
#include "tests/support/tensor_matchers.h"

namespace etc {
namespace {

constexpr double kTolerance = 1e-10;
constexpr int64_t kBatch = 2;
constexpr int64_t kHeads = 2;
constexpr int64_t kHeadDim = 3;
constexpr int64_t kValueDim = 5;
constexpr int64_t kLayers = 3;
constexpr int64_t kMaxDistance = 2;
constexpr AttentionImplementation kTensorBackends[] = {
    AttentionImplementation::kReference, AttentionImplementation::kBlocked};

struct Case {
  int64_t longs = 0;
  int64_t globals = 0;
  int64_t radius = 1;
  int64_t block = 0;
  ResidualAttention residual = ResidualAttention::kOff;
  bool hard = false;
  bool relative = true;
  bool causal = false;

  std::string Name() const {
    return "L" + std::to_string(longs) + " G" + std::to_string(globals) + " r" +
           std::to_string(radius) + " b" + std::to_string(block) +
           " residual " + std::to_string(static_cast<int>(residual)) +
           (hard ? " hard" : " soft") + (relative ? "" : " no ids") +
           (causal ? " causal" : "");
  }
};

torch::Tensor Leaf(std::vector<int64_t> shape) {
  return torch::randn(shape, torch::kFloat64).requires_grad_(true);
}

// The second example is shorter than the batch.
AttentionInputs RandomInputs(const Case& c, std::mt19937_64* random) {
  const PatternOptions options = {
      .local_radius = c.radius,
      .relative_pos_max_distance = c.relative ? kMaxDistance : 0,
      .hard_g2l = c.hard,
      .hard_l2g = c.hard};
  const AttentionInputs inputs(std::vector<AttentionPattern>{
      RandomMultihopPattern(c.longs, c.globals, options, random),
      RandomMultihopPattern((c.longs + 1) / 2, (c.globals + 1) / 2, options,
                            random)});
  return c.causal ? inputs.Causal() : inputs;
}

// Leaves of all layers, of both sides.
struct Leaves {
  Leaves(const Case& c, const AttentionInputs& attention) {
    for (const QuerySide side : {QuerySide::kLong, QuerySide::kGlobal}) {
      const int64_t own = side == QuerySide::kLong ? c.longs : c.globals;
      const int64_t other = side == QuerySide::kLong ? c.globals : c.longs;
      for (int64_t layer = 0; layer < kLayers; ++layer) {
        SparseAttentionInput input;
        AttentionOperands& operands = input.operands;
        operands.query = Leaf({kBatch, kHeads, own, kHeadDim});
        operands.own_key = Leaf({kBatch, kHeads, own, kHeadDim});
        operands.own_value = Leaf({kBatch, kHeads, own, kValueDim});
        operands.other_key = Leaf({kBatch, kHeads, other, kHeadDim});
        operands.other_value = Leaf({kBatch, kHeads, other, kValueDim});
        if (c.relative) {
          operands.relative = {.embedding = Leaf({8, kHeads, kHeadDim}),
                               .bias = Leaf({8, kHeads})};
        }
        input.pattern =
            attention.Softmax(side, kBatch, c.longs, c.globals, c.radius);
        input.residual.mode = c.residual;
        input.residual.decay = 0.6;
        if (c.residual == ResidualAttention::kGate && layer > 0) {
          input.gates = {.own = Leaf({kHeads}), .other = Leaf({kHeads})};
        }
        layers.push_back(input);
      }
    }
  }

  std::vector<SparseAttentionInput> layers;
};

// Contexts and carried scores of all layers by the reference, each carried to
// the next.
std::vector<torch::Tensor> RunAll(const Leaves& leaves) {
  std::vector<torch::Tensor> outputs;
  ResidualPair scores;
  for (size_t i = 0; i < leaves.layers.size(); ++i) {
    SparseAttentionInput input = leaves.layers[i];
    if (i % kLayers == 0) {
      scores = {};
    }
    input.previous = scores;
    const SparseAttentionOutput output =
        SparseAttention(input, AttentionImplementation::kReference);
    scores = output.scores;
    outputs.push_back(output.context);
    if (scores.defined()) {
      outputs.push_back(scores.own);
      outputs.push_back(scores.other);
    }
  }
  return outputs;
}

template <typename Tensors>
void ExpectClose(const Tensors& actual, const Tensors& expected,
                 const char* what) {
  std::vector<torch::Tensor> all;
  expected.ForEachTensor(
      [&](const torch::Tensor& tensor) { all.push_back(tensor); });
  size_t i = 0;
  actual.ForEachTensor([&](const torch::Tensor& tensor) {
    EXPECT_TRUE(IsClose(tensor, all[i], kTolerance)) << what << " " << i;
    ++i;
  });
}

// One layer, given the scores of the one below if there is one: the passes of
// the blocked backend against the reference and its gradients.
void ExpectPassesMatch(const BlockedBackend& blocked,
                       AttentionProblem problem) {
  if (problem.previous.defined()) {
    problem.previous.ForEachTensor([](torch::Tensor& scores) {
      scores = scores.detach().requires_grad_(true);
    });
  }
  const AttentionForward expected = ReferenceBackend().Forward(problem);
  if (problem.carry) {
    problem.carried = blocked.NewScores(problem);
  }
  const AttentionForward actual = blocked.Forward(problem);
  EXPECT_TRUE(IsClose(actual.context, expected.context, kTolerance));
  ExpectClose(actual.scores, expected.scores, "scores");

  const torch::Tensor gradient = torch::randn_like(expected.context);
  ScorePair of_scores;
  std::vector<torch::Tensor> outputs = {expected.context};
  std::vector<torch::Tensor> output_gradients = {gradient};
  if (problem.carry) {
    // Beyond the sequence, where carried scores are 0, they have no gradient.
    of_scores = {.own = torch::randn_like(expected.scores.own) *
                        expected.scores.own.detach().ne(0),
                 .other = torch::randn_like(expected.scores.other)};
    outputs.insert(outputs.end(), {expected.scores.own, expected.scores.other});
    output_gradients.insert(output_gradients.end(),
                            {of_scores.own, of_scores.other});
  }
  AttentionOperands gradients = problem.operands;
  ResidualGates of_gates = problem.gates;
  ScorePair of_previous = problem.previous;
  const auto differentiate = [&](torch::Tensor& tensor) {
    if (tensor.defined()) {
      tensor = torch::autograd::grad(outputs, {tensor}, output_gradients,
                                     /*retain_graph=*/true, false,
                                     /*allow_unused=*/true)[0];
    }
  };
  gradients.ForEachTensor(differentiate);
  of_gates.ForEachTensor(differentiate);
  of_previous.ForEachTensor(differentiate);

  ScoreGradients scores = {.carried = of_scores, .undo = problem.carry};
  if (problem.previous.defined()) {
    scores.previous = blocked.NewScores(problem);
  }
  const AttentionGradients found =
      blocked.Backward(problem, actual, gradient, scores);
  ExpectClose(found.operands, gradients, "gradient");
  ExpectClose(found.gates, of_gates, "gradient of a gate");
  ExpectClose(scores.previous, of_previous, "gradient of scores");
  if (problem.previous.defined()) {
    ExpectClose(problem.carried, problem.previous, "scores undone");
  }
}

void ExpectBlockedMatchesReference(const Case& c) {
  SCOPED_TRACE(c.Name());
  torch::manual_seed(c.longs * 100 + c.globals);
  std::mt19937_64 random(c.longs + 7 * c.globals + 31 * c.radius);
  const AttentionInputs attention = RandomInputs(c, &random);
  // Two heads, one at a time.
  const BlockedBackend blocked({.block_length = c.block, .scores_at_once = 1});
  ResidualPair below;
  const Leaves leaves(c, attention);
  for (size_t i = 0; i < leaves.layers.size(); ++i) {
    SparseAttentionInput input = leaves.layers[i];
    input.previous = i % kLayers == 0 ? ResidualPair() : below;
    ExpectPassesMatch(blocked, MakeAttentionProblem(input));
    below = SparseAttention(input, AttentionImplementation::kReference).scores;
  }
}

TEST(SparseAttentionTest, BlockedMatchesReferenceAtEveryLength) {
  for (const int64_t radius : {1, 2, 5}) {
    for (const int64_t block : {1, 3, 8}) {
      for (const int64_t longs :
           {int64_t{1}, radius, radius + 1, 2 * radius, 2 * radius + 1,
            block - 1, block, block + 1, 3 * block + 2}) {
        if (longs >= 1) {
          for (const bool causal : {false, true}) {
            ExpectBlockedMatchesReference({.longs = longs,
                                           .globals = 3,
                                           .radius = radius,
                                           .block = block,
                                           .residual = ResidualAttention::kSum,
                                           .causal = causal});
          }
        }
      }
    }
  }
}

TEST(SparseAttentionTest, BlockedMatchesReferenceInEveryMode) {
  for (const int64_t globals : {0, 1, 6}) {
    for (const ResidualAttention residual : kEveryResidualAttention) {
      for (const bool hard : {false, true}) {
        for (const bool relative : {false, true}) {
          for (const bool causal : {false, true}) {
            ExpectBlockedMatchesReference({.longs = 23,
                                           .globals = globals,
                                           .radius = 3,
                                           .block = 4,
                                           .residual = residual,
                                           .hard = hard,
                                           .relative = relative,
                                           .causal = causal});
          }
        }
      }
    }
  }
}

TEST(SparseAttentionTest, BlockedMatchesReferenceWithItsOwnBlockLength) {
  ExpectBlockedMatchesReference({.longs = 150,
                                 .globals = 9,
                                 .radius = 40,
                                 .residual = ResidualAttention::kMean});
}

// Heads that are computed one after the other drop weights of their own.
TEST(SparseAttentionTest, BlockedDropsTheWeightsOfEachHead) {
  const Case c = {.longs = 23, .globals = 5, .radius = 3, .block = 4};
  torch::manual_seed(6);
  std::mt19937_64 random(6);
  const Leaves leaves(c, RandomInputs(c, &random));
  const BlockedBackend blocked({.block_length = c.block, .scores_at_once = 1});
  for (const SparseAttentionInput& input : leaves.layers) {
    AttentionProblem problem = MakeAttentionProblem(input);
    problem.dropout = 0.4;
    problem.dropout_seed = 0x123456789abcdef0u;
    problem.first_head = 3;
    ExpectPassesMatch(blocked, problem);
  }
}

TEST(SparseAttentionTest, ExplicitTensorsAndPatternsAgree) {
  const Case c = {.longs = 11, .globals = 4, .radius = 2, .hard = true};
  torch::manual_seed(3);
  std::mt19937_64 random(3);
  const AttentionInputs patterns = RandomInputs(c, &random);
  const AttentionInputs tensors(Materialize(*patterns.patterns(), 11, 4));
  const Leaves leaves(c, patterns);
  const std::vector<torch::Tensor> a = RunAll(leaves);
  Leaves with_tensors = leaves;
  for (SparseAttentionInput& input : with_tensors.layers) {
    const bool is_long = input.pattern.window.is_restricted();
    input.pattern =
        tensors.Softmax(is_long ? QuerySide::kLong : QuerySide::kGlobal, kBatch,
                        c.longs, c.globals, c.radius);
  }
  const std::vector<torch::Tensor> b = RunAll(with_tensors);
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(a[i].equal(b[i])) << "output " << i;
  }
}

TEST(SparseAttentionTest, DefaultInputsLetEverythingSeeEverything) {
  const Case c = {.longs = 4, .globals = 3, .radius = 9, .relative = false};
  torch::manual_seed(5);
  const SparseAttentionInput input = Leaves(c, AttentionInputs()).layers[0];
  const AttentionOperands& operands = input.operands;
  const torch::Tensor expected =
      DenseAttention(
          {.query = operands.query,
           .key = torch::cat({operands.own_key, operands.other_key}, 2),
           .value = torch::cat({operands.own_value, operands.other_value}, 2)})
          .context;
  for (const AttentionImplementation implementation : kTensorBackends) {
    EXPECT_TRUE(IsClose(SparseAttention(input, implementation).context,
                        expected, kTolerance));
  }
}

// doc/model.md 13.1, last paragraph: L 3, r 1, nothing allowed. The official
// implementations give 2.215050 and 1.381649.
TEST(SparseAttentionTest, GivesZeroWithoutAnyKeyAllowed) {
  SparseAttentionInput input;
  const auto tokens = [](std::vector<double> values) {
    return torch::tensor(values, torch::kFloat64).reshape({1, 1, -1, 1});
  };
  const torch::Tensor none = torch::zeros({1, 1, 0, 1}, torch::kFloat64);
  input.operands = {.query = tokens({1.0, 1.0, 1.0}),
                    .own_key = tokens({0.5, -0.5, 1.0}),
                    .own_value = tokens({1.0, 2.0, 3.0}),
                    .other_key = none,
                    .other_value = none};
  input.pattern = AttentionInputs(ExplicitInputs{.l2l_mask = torch::zeros(
                                                     {1, 3, 3}, torch::kBool)})
                      .Softmax(QuerySide::kLong, 1, 3, 0, 1);
  for (const AttentionImplementation implementation : kTensorBackends) {
    const torch::Tensor context =
        SparseAttention(input, implementation).context;
    EXPECT_EQ(context.abs().max().item<double>(), 0.0);
  }
}

TEST(SparseAttentionTest, RejectsWhatDoesNotFit) {
  const Case c = {.longs = 5, .globals = 2, .radius = 2};
  std::mt19937_64 random(1);
  const AttentionInputs attention = RandomInputs(c, &random);
  const SparseAttentionInput good = Leaves(c, attention).layers[0];
  EXPECT_NO_THROW(SparseAttention(good));

  SparseAttentionInput bad = good;
  bad.pattern = {};
  EXPECT_THROW(SparseAttention(bad), c10::Error);
  // The patterns say 2, and do not fit 4 long tokens.
  EXPECT_THROW(attention.Softmax(QuerySide::kLong, kBatch, 5, 2, 3),
               c10::Error);
  EXPECT_THROW(attention.Softmax(QuerySide::kLong, kBatch, 4, 2, 2),
               c10::Error);
  // A pattern of another batch; one of the other softmax.
  bad.pattern = AttentionInputs().Softmax(QuerySide::kLong, 1, 5, 2, 2);
  EXPECT_THROW(SparseAttention(bad), c10::Error);
  bad.pattern = attention.Softmax(QuerySide::kGlobal, kBatch, 5, 2, 2);
  EXPECT_THROW(SparseAttention(bad), c10::Error);
  bad = good;
  bad.operands.own_key = bad.operands.own_key.narrow(2, 0, 4);
  EXPECT_THROW(SparseAttention(bad), c10::Error);
  bad = good;
  bad.residual.mode = ResidualAttention::kSum;
  const auto zeros = [](int64_t columns) {
    return torch::zeros({kBatch, kHeads, 5, columns}, torch::kFloat64);
  };
  bad.previous = {.own = zeros(5), .layers = 1};
  EXPECT_THROW(SparseAttention(bad), c10::Error);  // one of two
  bad.previous = {.own = zeros(5), .other = zeros(3), .layers = 1};
  EXPECT_THROW(SparseAttention(bad), c10::Error);  // 3 globals, not 2
  bad.previous = {.own = zeros(5), .other = zeros(2)};
  EXPECT_THROW(SparseAttention(bad), c10::Error);  // of how many layers?
  bad.previous.layers = 1;
  EXPECT_NO_THROW(SparseAttention(bad));
  bad.residual.mode = ResidualAttention::kOff;
  EXPECT_THROW(SparseAttention(bad), c10::Error);
}

// float64 beside others would be rounded, and computed without kernels.
TEST(SparseAttentionTest, RejectsOtherDtypes) {
  const Case c = {.longs = 5, .globals = 2, .radius = 2};
  std::mt19937_64 random(1);
  SparseAttentionInput good = Leaves(c, RandomInputs(c, &random)).layers[0];
  good.operands.ForEachTensor([](torch::Tensor& tensor) {
    tensor = tensor.detach().to(torch::kFloat32);
  });
  good.residual.mode = ResidualAttention::kSum;
  const torch::Tensor zeros = torch::zeros({kBatch, kHeads, 5, 7});
  good.previous = {.own = zeros.narrow(3, 0, 5),
                   .other = zeros.narrow(3, 5, 2),
                   .layers = 1};
  EXPECT_NO_THROW(SparseAttention(good));
  for (const torch::ScalarType narrow : {torch::kBFloat16, torch::kHalf}) {
    SparseAttentionInput mixed = good;
    mixed.operands.own_key = good.operands.own_key.to(narrow);
    EXPECT_NO_THROW(SparseAttention(mixed));
  }
  for (const auto part :
       {&AttentionOperands::query, &AttentionOperands::own_key,
        &AttentionOperands::own_value, &AttentionOperands::other_key,
        &AttentionOperands::other_value}) {
    SparseAttentionInput bad = good;
    bad.operands.*part = (good.operands.*part).to(torch::kFloat64);
    EXPECT_THAT(MessageOf([&] { SparseAttention(bad); }),
                testing::HasSubstr("an operand of attention is "));
  }
  for (const torch::ScalarType other : {torch::kFloat64, torch::kHalf}) {
    SparseAttentionInput bad = good;
    bad.previous.own = good.previous.own->to(other);
    EXPECT_THAT(MessageOf([&] { SparseAttention(bad); }),
                testing::HasSubstr("previous scores should be Float"));
  }
  good.residual.mode = ResidualAttention::kGate;
  good.gates = {.own = torch::ones({kHeads}), .other = torch::ones({kHeads})};
  for (const auto block : {&ResidualGates::own, &ResidualGates::other}) {
    SparseAttentionInput gated = good;
    gated.gates.*block = (good.gates.*block).to(torch::kBFloat16);
    EXPECT_NO_THROW(SparseAttention(gated));
    gated.gates.*block = (good.gates.*block).to(torch::kFloat64);
    EXPECT_THAT(MessageOf([&] { SparseAttention(gated); }),
                testing::HasSubstr("a gate is Double, but the queries are "
                                   "Float"));
  }
}

// A distance of 2 has the ids 0 to 7.
TEST(SparseAttentionTest, RefusesARelativeTableThatIsTooShort) {
  const Case c = {.longs = 5, .globals = 2, .radius = 2};
  std::mt19937_64 random(1);
  SparseAttentionInput input = Leaves(c, RandomInputs(c, &random)).layers[0];
  input.operands.ForEachTensor([](torch::Tensor& tensor) {
    tensor = tensor.detach().to(torch::kFloat32);
  });
  const RelativeTable table = input.operands.relative;
  for (const AttentionImplementation implementation :
       {AttentionImplementation::kReference, AttentionImplementation::kBlocked,
        AttentionImplementation::kKernel}) {
    const auto message = [&] {
      return MessageOf([&] { SparseAttention(input, implementation); });
    };
    input.operands.relative = table;
    EXPECT_EQ(message(), "nothing was thrown");
    input.operands.relative = {.embedding = table.embedding.narrow(0, 0, 7),
                               .bias = table.bias.narrow(0, 0, 7)};
    EXPECT_THAT(message(),
                testing::HasSubstr("the relative table should have at least 8 "
                                   "ids for a distance of 2, but has 7"));
  }
}

TEST(SparseAttentionTest, AnEmptyBatchHasAnEmptyContext) {
  const auto tokens = [](int64_t length, int64_t size) {
    return torch::zeros({0, kHeads, length, size});
  };
  SparseAttentionInput input;
  input.operands = {
      .query = tokens(5, kHeadDim),
      .own_key = tokens(5, kHeadDim),
      .own_value = tokens(5, kValueDim),
      .other_key = tokens(2, kHeadDim),
      .other_value = tokens(2, kValueDim),
      .relative = {.embedding = torch::zeros({8, kHeads, kHeadDim}),
                   .bias = torch::zeros({8, kHeads})}};
  input.pattern = AttentionInputs::Everything(kMaxDistance)
                      .Softmax(QuerySide::kLong, 0, 5, 2, 1);
  input.residual.mode = ResidualAttention::kSum;
  for (const AttentionImplementation implementation :
       {AttentionImplementation::kReference, AttentionImplementation::kBlocked,
        AttentionImplementation::kKernel}) {
    const SparseAttentionOutput output = SparseAttention(input, implementation);
    EXPECT_EQ(output.context.sizes(),
              at::IntArrayRef({0, kHeads, 5, kValueDim}));
    EXPECT_EQ(output.scores.own->sizes(), at::IntArrayRef({0, kHeads, 5, 3}));
  }
}

}  // namespace
}  // namespace etc
