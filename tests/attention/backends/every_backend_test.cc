// Requirements on every backend, run through the same list for each: carried
// scores and their gradients, bfloat16, explicit masks; of the fused ones
// agreement with the float64 reference in all modes and storages. Gradients of
// the reference in double are compared with differences, and those of blocks
// with them. score_storage_test.cc is the list for the storage of scores.

#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attention/attention_inputs.h"
#include "attention/softmax_pattern.h"
#include "attention/sparse_attention.h"
#include "tests/support/attention_stack.h"
#include "tests/support/backend_agreement.h"
#include "tests/support/gradient_check.h"
#include "tests/support/implementation_names.h"
#include "tests/support/pattern_layers.h"
#include "tests/support/score_storages.h"
#include "tests/support/tensor_matchers.h"

namespace etc {
namespace {

class EveryBackendTest
    : public testing::TestWithParam<AttentionImplementation> {
 protected:
  static bool IsFused() {
    return GetParam() != AttentionImplementation::kReference;
  }
  static SparseAttentionOutput Run(const SparseAttentionInput& input) {
    return SparseAttention(input, GetParam());
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, EveryBackendTest,
                         testing::Values(AttentionImplementation::kReference,
                                         AttentionImplementation::kBlocked,
                                         AttentionImplementation::kKernel),
                         ImplementationName);

// Backends that are compared in float32 with the reference; not that itself.
class FusedBackendTest
    : public testing::TestWithParam<AttentionImplementation> {};

INSTANTIATE_TEST_SUITE_P(Backends, FusedBackendTest,
                         testing::Values(AttentionImplementation::kBlocked,
                                         AttentionImplementation::kKernel),
                         ImplementationName);

// Compares the gradients of all leaves of layers, in double: those of the
// reference with differences, and those of the blocked backend, with each way
// to store scores, with those of the reference.
void ExpectLayerGradientsOfDifferences(const AttentionStack& layers) {
  AttentionStack stack = layers.As(torch::kFloat64);
  std::vector<std::pair<std::string, torch::Tensor>> variables;
  std::vector<torch::Tensor> leaves;
  for (SparseAttentionInput& input : stack.layers) {
    for (torch::Tensor* tensor : AttentionStack::Tensors(&input)) {
      if (tensor->numel() == 0) {
        continue;  // of the block that a pattern leaves empty
      }
      // Elements of contiguous leaves are changed one at a time.
      *tensor = tensor->detach().contiguous().requires_grad_(true);
      variables.emplace_back("leaf " + std::to_string(variables.size()),
                             *tensor);
      leaves.push_back(*tensor);
    }
  }
  const auto scalar = [&](AttentionImplementation implementation,
                          ScoreStorage storage) {
    torch::manual_seed(5);
    torch::Tensor sum = torch::zeros({}, torch::kFloat64);
    SparseAttentionOutput below;
    for (SparseAttentionInput input : stack.layers) {
      input.previous = below.scores;
      input.residual.storage = storage;
      below = SparseAttention(input, implementation);
      sum = sum + WeightedSum(below.context, variables.size());
    }
    const SoftmaxMasks masks = stack.layers[0].pattern.masks(torch::kCPU);
    return sum +
           WeightedSum(*below.scores.own * masks.own_mask.unsqueeze(1), 1) +
           WeightedSum(*below.scores.other * masks.other_mask.unsqueeze(1), 2);
  };
  const auto by_reference = [&] {
    return scalar(AttentionImplementation::kReference, ScoreStorage::kStore);
  };
  EXPECT_TRUE(GradientsMatchDifferences(by_reference, variables));
  const std::vector<torch::Tensor> expected =
      torch::autograd::grad({by_reference()}, leaves);
  constexpr auto kBlocked = AttentionImplementation::kBlocked;
  for (const ScoreStorage storage :
       StoragesOf(stack.layers[0].residual.mode, kBlocked)) {
    SCOPED_TRACE("storage " + std::to_string(static_cast<int>(storage)));
    const std::vector<torch::Tensor> gradients =
        torch::autograd::grad({scalar(kBlocked, storage)}, leaves);
    for (size_t i = 0; i < leaves.size(); ++i) {
      EXPECT_TRUE(IsClose(gradients[i], expected[i], 1e-10))
          << variables[i].first;
    }
  }
}

// The same of one side of a case.
void ExpectGradientsOfDifferences(const AttentionCase& c, QuerySide side) {
  SCOPED_TRACE(c.Name());
  torch::manual_seed(3);
  const AttentionInputs attention = MakeAttention(c);
  ExpectLayerGradientsOfDifferences(AttentionStack(c, side, attention));
}

// One layer of leaves.
struct OneLayer {
  explicit OneLayer(const AttentionCase& c,
                    torch::ScalarType type = torch::kFloat32)
      : attention(MakeAttention(c)) {
    torch::manual_seed(4);
    input = AttentionStack(c, QuerySide::kLong, attention).As(type).layers[0];
  }
  AttentionInputs attention;
  SparseAttentionInput input;
};

TEST_P(FusedBackendTest, MatchesReferenceInEveryMode) {
  for (const int64_t globals : {0, 1, 7}) {
    for (const ResidualAttention residual : kEveryResidualAttention) {
      for (const bool hard : {false, true}) {
        for (const int64_t distance : {0, 2}) {
          ExpectMatchesReference(GetParam(), {.longs = 29,
                                              .globals = globals,
                                              .residual = residual,
                                              .hard = hard,
                                              .distance = distance});
        }
      }
    }
  }
}

// Causal layers, whose windows end with the query.
TEST_P(FusedBackendTest, MatchesReferenceInOneSidedWindows) {
  for (const int64_t longs : {3, 29, 75}) {
    for (const ResidualAttention residual : kEveryResidualAttention) {
      for (const bool hard : {false, true}) {
        ExpectMatchesReference(GetParam(), {.longs = longs,
                                            .globals = 7,
                                            .radius = 5,
                                            .residual = residual,
                                            .hard = hard,
                                            .causal = true});
      }
    }
  }
}

// Dense attention, as in BERT, within each example of a row: no long tokens.
// (cpu_backend_test.cc goes on with longer rows.) Not a single token: of one
// key the gradient of the score is 0 but for rounding, and nothing to compare
// with.
TEST_P(FusedBackendTest, MatchesReferenceWithoutLongTokens) {
  for (const int64_t globals : {3, 53}) {
    for (const ResidualAttention residual : kEveryResidualAttention) {
      for (const Borders borders :
           {Borders::kNone, Borders::kPacked, Borders::kScattered}) {
        for (const int64_t distance : {0, 2}) {
          ExpectMatchesReference(GetParam(), {.longs = 0,
                                              .globals = globals,
                                              .residual = residual,
                                              .borders = borders,
                                              .distance = distance});
        }
      }
    }
  }
}

TEST_P(FusedBackendTest, DropsTheSameWeightsForTheSameSeed) {
  for (const ResidualAttention residual :
       {ResidualAttention::kOff, ResidualAttention::kSum,
        ResidualAttention::kGate}) {
    for (const int64_t longs : {40, 250}) {
      ExpectMatchesReference(GetParam(), {.longs = longs,
                                          .globals = 9,
                                          .radius = 12,
                                          .layers = 2,
                                          .residual = residual,
                                          .dropout = 0.3});
    }
    ExpectMatchesReference(GetParam(), {.longs = 250,
                                        .globals = 9,
                                        .radius = 12,
                                        .layers = 2,
                                        .residual = residual,
                                        .causal = true,
                                        .dropout = 0.3});
    ExpectMatchesReference(GetParam(), {.longs = 0,
                                        .globals = 131,
                                        .layers = 2,
                                        .residual = residual,
                                        .borders = Borders::kPacked,
                                        .distance = 0,
                                        .dropout = 0.3});
  }
}

// Some heads of a layer, computed by themselves.
TEST_P(EveryBackendTest, DropsTheSameWeightsOfSomeHeads) {
  const AttentionCase c = {.longs = 90,
                           .globals = 9,
                           .radius = 12,
                           .heads = 3,
                           .layers = 1,
                           .residual = ResidualAttention::kOff,
                           .dropout = 0.3};
  for (const QuerySide side : {QuerySide::kLong, QuerySide::kGlobal}) {
    SparseAttentionInput input =
        AttentionStack(c, side, MakeAttention(c)).As(torch::kFloat32).layers[0];
    torch::manual_seed(4);
    const torch::Tensor all = Run(input).context;
    constexpr int64_t kFirst = 1;
    const auto heads_of = [](torch::Tensor& tensor, int64_t axis) {
      tensor = tensor.narrow(axis, kFirst, 2);
    };
    AttentionOperands& operands = input.operands;
    for (torch::Tensor* const tensor :
         {&operands.query, &operands.own_key, &operands.own_value,
          &operands.other_key, &operands.other_value,
          &operands.relative.embedding, &operands.relative.bias}) {
      heads_of(*tensor, 1);
    }
    input.first_head = kFirst;
    torch::manual_seed(4);
    EXPECT_TRUE(IsClose(Run(input).context, all.narrow(1, kFirst, 2), 1e-6));
    input.first_head = 0;
    torch::manual_seed(4);
    EXPECT_FALSE(IsClose(Run(input).context, all.narrow(1, kFirst, 2), 1e-2));
  }
}

// 1 / (1 - p) has few digits if the difference is taken in float32.
TEST_P(FusedBackendTest, KeepsTheDigitsOfADropoutNearOne) {
  ExpectMatchesReference(GetParam(), {.longs = 250,
                                      .globals = 9,
                                      .radius = 12,
                                      .layers = 1,
                                      .residual = ResidualAttention::kOff,
                                      .dropout = 0.9993});
}

// Carried scores near a billion, in steps of 64, that float32 holds exactly.
// Divided by 24 layers they are 2.7 apart, and the softmax depends on all of
// them; undivided some are the largest together with others.
TEST_P(EveryBackendTest, MatchesReferenceAtScoresOfABillion) {
  const AttentionCase c = {.longs = 70, .globals = 20, .radius = 12};
  for (const ResidualAttention residual :
       {ResidualAttention::kSum, ResidualAttention::kMean}) {
    for (const double largest : {1e9, -1e9}) {
      if (residual == ResidualAttention::kMean &&
          GetParam() != AttentionImplementation::kKernel) {
        continue;  // divides, and rounds, before it takes the differences
      }
      const OneLayer layer(c);
      SparseAttentionInput input = layer.input;
      input.residual.mode = residual;
      const auto steps = [&](int64_t columns) {
        return torch::randint(0, 9, {2, 2, 70, columns})
                   .to(torch::kFloat32)
                   .mul(-64.0) +
               largest;
      };
      input.previous = {.own = steps(25), .other = steps(20), .layers = 23};
      // The layer itself adds less than half a step.
      SparseAttentionInput exact = input;
      for (torch::Tensor* tensor : AttentionStack::Tensors(&exact)) {
        *tensor = tensor->detach().to(torch::kFloat64).requires_grad_(true);
      }
      for (SparseAttentionInput* one : {&input, &exact}) {
        one->operands.query =
            torch::zeros_like(one->operands.query).requires_grad_(true);
        one->operands.relative.bias =
            torch::zeros_like(one->operands.relative.bias.detach())
                .requires_grad_(true);
      }
      if (exact.previous.defined()) {
        exact.previous = {.own = exact.previous.own->to(torch::kFloat64),
                          .other = exact.previous.other->to(torch::kFloat64),
                          .layers = exact.previous.layers};
      }
      const SparseAttentionOutput actual = Run(input);
      const SparseAttentionOutput expected =
          SparseAttention(exact, AttentionImplementation::kReference);
      EXPECT_TRUE(IsClose(actual.context, expected.context, 1e-5));
      WeightedSum(actual.context, 1).backward();
      WeightedSum(expected.context, 1).backward();
      EXPECT_TRUE(IsClose(input.operands.own_value.grad(),
                          exact.operands.own_value.grad(), 1e-5));
      EXPECT_TRUE(IsClose(input.operands.query.grad(),
                          exact.operands.query.grad(), 1e-5));
    }
  }
}

// As a bias hides keys: the first query sees such a key alone, the next two of
// them, the third others too, and the last one, padding, nothing.
TEST_P(EveryBackendTest, KeysOfTheLowestScoresAreSeenAndOthersAreNot) {
  const SoftmaxPattern pattern =
      CausalPattern({.queries = 5, .keys = 5, .lengths = {{4, 5}}});
  SparseAttentionInput input =
      LayersOver(pattern, {}).As(torch::kFloat32).layers[0];
  const torch::Tensor bias = torch::zeros({1, 1, 5, 5});
  bias.narrow(2, 0, 3).select(3, 0).fill_(std::numeric_limits<float>::lowest());
  bias[0][0][1][1] = std::numeric_limits<float>::lowest();
  input.previous = {
      .own = torch::zeros({1, 1, 5, 0}), .other = bias, .layers = 1};
  const auto exact = [](const torch::Tensor& tensor) {
    return tensor.detach().to(torch::kFloat64);
  };
  const AttentionOperands& operands = input.operands;
  const torch::Tensor logits =
      exact(operands.query).matmul(exact(operands.other_key).transpose(2, 3)) /
          std::sqrt(static_cast<double>(operands.query.size(3))) +
      exact(bias);
  const torch::Tensor hidden =
      pattern.masks(torch::kCPU).other_mask.unsqueeze(1).logical_not();
  const torch::Tensor weights =
      torch::softmax(
          logits.masked_fill(hidden, -std::numeric_limits<double>::infinity()),
          -1)
          .nan_to_num(0.0);
  const torch::Tensor context = Run(input).context;
  EXPECT_TRUE(
      IsClose(context, weights.matmul(exact(operands.other_value)), 1e-6));
  context.sum().backward();
  EXPECT_TRUE(IsClose(
      operands.other_value.grad(),
      weights.sum(2).unsqueeze(-1).expand_as(operands.other_value), 1e-6));
  EXPECT_TRUE(operands.query.grad().isfinite().all().item<bool>());
}

// No values of which to make a context, no heads at all. Memory that is not
// written would have numbers that are none.
TEST_P(EveryBackendTest, TakesNoHeadsButNoHeadsWithoutElements) {
  for (const ResidualAttention residual :
       {ResidualAttention::kOff, ResidualAttention::kGate}) {
    AttentionCase c = {.longs = 9, .layers = 2, .residual = residual};
    c.heads = 0;
    AttentionStack stack = AttentionStack(c, QuerySide::kLong, MakeAttention(c))
                               .As(torch::kFloat32);
    ExpectFinite(RunLayers(&stack, GetParam()));
  }
  AttentionCase c = {.longs = 9};
  c.value_dim = 0;
  AttentionStack stack =
      AttentionStack(c, QuerySide::kLong, MakeAttention(c)).As(torch::kFloat32);
  EXPECT_THROW(RunLayers(&stack, GetParam()), c10::Error);
}

TEST(KernelBackendTest, ComputesInFloat32Alone) {
  const OneLayer layer({.longs = 9}, torch::kFloat64);
  EXPECT_THROW(SparseAttention(layer.input, AttentionImplementation::kKernel),
               c10::Error);
}

TEST(BackendGradientsTest, AreThoseOfDifferences) {
  for (const ResidualAttention residual :
       {ResidualAttention::kMean, ResidualAttention::kDecay,
        ResidualAttention::kGate}) {
    for (const QuerySide side : {QuerySide::kLong, QuerySide::kGlobal}) {
      ExpectGradientsOfDifferences({.longs = 7,
                                    .radius = 2,
                                    .head_dim = 2,
                                    .value_dim = 3,
                                    .layers = 2,
                                    .residual = residual,
                                    .hard = true},
                                   side);
      if (side == QuerySide::kLong) {
        ExpectGradientsOfDifferences({.longs = 11,
                                      .radius = 3,
                                      .head_dim = 3,
                                      .value_dim = 4,
                                      .layers = 2,
                                      .residual = residual,
                                      .causal = true,
                                      .dropout = 0.3},
                                     side);
      }
    }
  }
}

TEST(BackendGradientsTest, OfGradientsUnderDropoutAreThoseOfDifferences) {
  OneLayer layer(
      {.longs = 7, .radius = 2, .head_dim = 2, .value_dim = 3, .dropout = 0.3},
      torch::kFloat64);
  torch::Tensor& query = layer.input.operands.query;
  query = query.detach().contiguous().requires_grad_(true);
  EXPECT_TRUE(GradientsMatchDifferences(
      [&] {
        const torch::AutoGradMode record(true);
        torch::manual_seed(5);
        const torch::Tensor context =
            SparseAttention(layer.input, AttentionImplementation::kReference)
                .context;
        return torch::autograd::grad({context.sin().sum()}, {query}, {},
                                     /*retain_graph=*/true,
                                     /*create_graph=*/true)[0]
            .sin()
            .sum();
      },
      {{"query", query}}, /*atol=*/1e-6));
}

// Documents of one token and of many, of fewer queries than keys and of more,
// without keys and without queries, and padding.
const std::vector<PackedDocument>& OddDocuments() {
  static const std::vector<PackedDocument> documents = {
      {0, 2, 3}, {1, 7, 7}, {2, 1, 1}, {3, 4, 21}, {4, 1, 1},
      {5, 0, 3}, {6, 2, 0}, {0, 5, 1}, {7, 30, 5}, {8, 1, 1}};
  return documents;
}

TEST_P(FusedBackendTest, MatchesReferenceInOddRunsAndPackedDocuments) {
  const std::vector<SoftmaxPattern> patterns = {
      PatternFromMask(MaskOfOddRuns(29, 75, 6),
                      {.queries = 29, .keys = 75, .batch = 2}),
      PatternFromMask(MaskOfOddRuns(7, 400, 30),
                      {.queries = 7, .keys = 400, .batch = 2}),
      PackedPattern(OddDocuments(), /*causal=*/false, 0),
      PackedPattern(OddDocuments(), /*causal=*/true, 0)};
  for (size_t i = 0; i < patterns.size(); ++i) {
    for (const ResidualAttention residual : kEveryResidualAttention) {
      SCOPED_TRACE("pattern " + std::to_string(i) + " residual " +
                   std::to_string(static_cast<int>(residual)));
      ExpectLayersMatchReference(
          GetParam(),
          // With one head the gates' gradient is a single number, which the
          // reference may have by luck.
          LayersOver(patterns[i], {.residual = residual, .heads = 3}));
    }
  }
}

// Kernels know float32 alone: the test before compares their gradients with
// those of the reference, which are compared with differences here.
TEST(BackendGradientsTest, OfOddRunsAndDocumentsAreThoseOfDifferences) {
  const std::vector<SoftmaxPattern> patterns = {
      PatternFromMask(MaskOfOddRuns(7, 25, 3),
                      {.queries = 7, .keys = 25, .batch = 2}),
      PackedPattern({{1, 3, 4}, {2, 1, 1}, {0, 2, 1}, {3, 4, 7}},
                    /*causal=*/false, 0)};
  for (const SoftmaxPattern& pattern : patterns) {
    for (const ResidualAttention residual :
         {ResidualAttention::kMean, ResidualAttention::kGate}) {
      ExpectLayerGradientsOfDifferences(
          LayersOver(pattern, {.residual = residual, .head_dim = 2}));
    }
  }
}

// Contexts and scores of layers whose gates are all `gate`, or of those of
// another mode with the same operands.
std::vector<torch::Tensor> OutputsOf(AttentionCase c,
                                     AttentionImplementation implementation,
                                     std::optional<double> gate) {
  c.residual =
      gate.has_value() ? ResidualAttention::kGate : ResidualAttention::kSum;
  torch::manual_seed(8);
  const AttentionInputs attention = MakeAttention(c);
  const ResidualAttention residual = c.residual;
  c.residual = ResidualAttention::kSum;  // draws no gates
  AttentionStack stack(c, QuerySide::kLong, attention);
  std::vector<torch::Tensor> outputs;
  ResidualPair below;
  for (SparseAttentionInput input : stack.layers) {
    input.residual.mode = residual;
    if (gate.has_value()) {
      const torch::Tensor gates = torch::full({c.heads}, *gate);
      input.gates = {.own = gates, .other = gates};
    }
    input.previous = below;
    const SparseAttentionOutput output = SparseAttention(input, implementation);
    outputs.insert(outputs.end(), {output.context, output.scores.own->clone(),
                                   output.scores.other->clone()});
    below = output.scores;
  }
  return outputs;
}

TEST_P(EveryBackendTest, AGateOf1IsTheSumAndOneOf0NothingToTheBit) {
  const AttentionCase c = {.longs = 70, .globals = 20, .radius = 12};
  const auto sum = OutputsOf(c, GetParam(), std::nullopt);
  const auto one = OutputsOf(c, GetParam(), 1.0);
  ASSERT_EQ(sum.size(), one.size());
  for (size_t i = 0; i < sum.size(); ++i) {
    EXPECT_TRUE(one[i].equal(sum[i])) << i;
  }

  const auto zero = OutputsOf(c, GetParam(), 0.0);
  torch::manual_seed(8);
  const AttentionInputs attention = MakeAttention(c);
  AttentionStack stack(c, QuerySide::kLong, attention);
  for (size_t i = 0; i < stack.layers.size(); ++i) {
    SparseAttentionInput input = stack.layers[i];
    input.residual.mode = ResidualAttention::kOff;
    EXPECT_TRUE(zero[3 * i].equal(Run(input).context)) << i;
  }
}

// logits_n = (1 - beta) s_n + beta logits_{n-1}.
TEST_P(EveryBackendTest, ADecayIsAMovingAverage) {
  const AttentionCase c = {.longs = 0,
                           .globals = 9,
                           .layers = 4,
                           .residual = ResidualAttention::kDecay,
                           .borders = Borders::kNone,
                           .distance = 0};
  torch::manual_seed(8);
  const AttentionInputs attention = MakeAttention(c);
  const AttentionStack stack(c, QuerySide::kGlobal, attention);
  torch::Tensor logits = torch::zeros({});
  ResidualPair below;
  for (SparseAttentionInput input : stack.layers) {
    input.residual.decay = 0.75;
    const torch::Tensor scores =
        torch::matmul(input.operands.query,
                      input.operands.own_key.transpose(-2, -1)) /
        std::sqrt(static_cast<double>(c.head_dim));
    logits = 0.25 * scores + 0.75 * logits;
    const torch::Tensor mask =
        input.pattern.masks(torch::kCPU).own_mask.unsqueeze(1);
    const torch::Tensor expected =
        torch::softmax(logits.masked_fill(mask.logical_not(), -1e30), -1)
            .matmul(input.operands.own_value);
    input.previous = below;
    const SparseAttentionOutput output = Run(input);
    const torch::Tensor sees = mask.any(-1, true).to(torch::kFloat32);
    EXPECT_TRUE(IsClose(output.context, expected * sees, 1e-5));
    below = output.scores;
  }
}

TEST_P(EveryBackendTest, RefusesGatesAndDecaysThatDoNotFit) {
  const AttentionCase c = {.longs = 9, .residual = ResidualAttention::kGate};
  torch::manual_seed(4);
  const AttentionInputs attention = MakeAttention(c);
  const AttentionStack stack(c, QuerySide::kLong, attention);
  SparseAttentionInput good = stack.layers[1];
  good.previous = Run(stack.layers[0]).scores;
  EXPECT_NO_THROW(Run(good));

  SparseAttentionInput bad = good;
  bad.gates = {};
  EXPECT_THROW(Run(bad), c10::Error);  // no gates for what is carried
  bad = good;
  bad.gates.other = torch::Tensor();
  EXPECT_THROW(Run(bad), c10::Error);
  bad = good;
  bad.gates.own = torch::ones({3});
  EXPECT_THROW(Run(bad), c10::Error);  // of 2 heads
  bad = good;
  bad.gates.own = torch::ones({2}, torch::kInt64);
  EXPECT_THROW(Run(bad), c10::Error);
  bad = good;
  bad.residual.mode = ResidualAttention::kSum;
  EXPECT_THROW(Run(bad), c10::Error);  // gates, but no mode that has them

  bad = good;
  bad.gates = {};
  bad.residual.mode = ResidualAttention::kDecay;
  for (const double decay : {0.0, 1.0, -0.5, 1e-5}) {
    bad.residual.decay = decay;
    EXPECT_THROW(Run(bad), c10::Error) << decay;
  }
  bad.residual.decay = 0.9;
  EXPECT_NO_THROW(Run(bad));
}

TEST_P(EveryBackendTest, GivesTheSameWithoutGradients) {
  const OneLayer layer({.longs = 70});
  const SparseAttentionOutput with = Run(layer.input);
  const torch::NoGradGuard no_grad;
  const SparseAttentionOutput without = Run(layer.input);
  EXPECT_TRUE(with.context.requires_grad());
  EXPECT_FALSE(without.context.requires_grad());
  EXPECT_TRUE(with.context.equal(without.context));
  EXPECT_TRUE(with.scores.own->equal(without.scores.own));
}

TEST_P(EveryBackendTest, PassesOnAGradientOfTheScoresAlone) {
  const OneLayer layer({.longs = 20, .borders = Borders::kNone});
  const torch::Tensor previous =
      torch::zeros({2, 2, 20, 7}).requires_grad_(true);
  SparseAttentionInput input = layer.input;
  input.previous = {.own = previous,
                    .other = torch::zeros({2, 2, 20, 3}).requires_grad_(true),
                    .layers = 1};
  const torch::Tensor visible = input.pattern.masks(torch::kCPU)
                                    .own_mask.unsqueeze(1)
                                    .expand({2, 2, 20, 7})
                                    .to(torch::kFloat32);
  (*Run(input).scores.own * visible).sum().backward();
  EXPECT_TRUE(IsClose(previous.grad() * visible, visible, 0.0));
  const auto is_zero = [](const torch::Tensor& gradient) {
    return !gradient.defined() || gradient.abs().max().item<float>() == 0.0f;
  };
  EXPECT_TRUE(is_zero(input.previous.other->grad()));
  EXPECT_TRUE(is_zero(input.operands.own_value.grad()));
}

// Scores are sums over all layers, for which bfloat16 has too few bits.
TEST_P(EveryBackendTest, CarriesFloat32ScoresWithBfloat16Operands) {
  const OneLayer layer({.longs = 70, .head_dim = 32, .value_dim = 32});
  SparseAttentionInput narrow = layer.input;
  SparseAttentionInput wide = layer.input;
  const auto narrow_tensors = AttentionStack::Tensors(&narrow);
  const auto wide_tensors = AttentionStack::Tensors(&wide);
  for (size_t i = 0; i < narrow_tensors.size(); ++i) {
    const torch::Tensor rounded =
        narrow_tensors[i]->detach().to(torch::kBFloat16);
    *narrow_tensors[i] = rounded.clone().requires_grad_(true);
    *wide_tensors[i] = rounded.to(torch::kFloat32).requires_grad_(true);
  }
  const SparseAttentionOutput output = Run(narrow);
  const SparseAttentionOutput expected = Run(wide);
  EXPECT_EQ(output.scores.own->scalar_type(), torch::kFloat32);
  EXPECT_EQ(output.context.scalar_type(), torch::kBFloat16);
  EXPECT_TRUE(IsClose(output.scores.own, expected.scores.own, 1e-5));
  // Rounded to 8 bits.
  EXPECT_TRUE(IsClose(output.context, expected.context,
                      0x1p-8 * expected.context.abs().max().item<double>()));
  output.context.to(torch::kFloat32).square().sum().backward();
  expected.context.square().sum().backward();
  const torch::Tensor gradient = wide.operands.own_key.grad();
  EXPECT_EQ(narrow.operands.own_key.grad().scalar_type(), torch::kBFloat16);
  EXPECT_TRUE(IsClose(narrow.operands.own_key.grad(), gradient,
                      0.05 * gradient.abs().max().item<double>()));
}

TEST_P(EveryBackendTest, ContextsHaveTheDtypeOfTheQueries) {
  const OneLayer layer({.longs = 9});
  for (const auto& [of_query, of_values] :
       {std::pair(torch::kFloat32, torch::kBFloat16),
        std::pair(torch::kBFloat16, torch::kFloat32)}) {
    SparseAttentionInput input = layer.input;
    AttentionOperands& operands = input.operands;
    operands.query = operands.query.to(of_query);
    operands.own_value = operands.own_value.to(of_values);
    operands.other_value = operands.other_value.to(of_values);
    EXPECT_EQ(Run(input).context.scalar_type(), of_query);
  }
}

// In steps of 1, which scores of 160 have in 8 bits, contexts are off by a
// quarter. Here they are off by their own rounding.
TEST_P(EveryBackendTest, SumsScoresOfBfloat16OperandsInFloat32) {
  for (const int64_t longs : {0, 70}) {
    const AttentionCase c = {.longs = longs,
                             .globals = 40,
                             .head_dim = 32,
                             .value_dim = 32,
                             .borders = Borders::kNone};
    const QuerySide side = longs == 0 ? QuerySide::kGlobal : QuerySide::kLong;
    torch::manual_seed(4);
    const AttentionInputs attention = MakeAttention(c);
    SparseAttentionInput narrow = AttentionStack(c, side, attention).layers[0];
    narrow.operands.query = narrow.operands.query * 60.0;
    for (torch::Tensor* tensor : AttentionStack::Tensors(&narrow)) {
      *tensor = tensor->to(torch::kBFloat16);
    }
    SparseAttentionInput exact = narrow;
    for (torch::Tensor* tensor : AttentionStack::Tensors(&exact)) {
      *tensor = tensor->to(torch::kFloat64);
    }
    const SparseAttentionOutput actual = Run(narrow);
    const SparseAttentionOutput expected =
        SparseAttention(exact, AttentionImplementation::kReference);
    ASSERT_GT(expected.scores.own->abs().max().item<double>(), 160.0);
    EXPECT_TRUE(IsClose(actual.context, expected.context,
                        0x1p-8 * expected.context.abs().max().item<double>()));
  }
}

TEST_P(EveryBackendTest, TakesMasksAndIdsAsTensorsOrRefusesThem) {
  const OneLayer layer({.longs = 9});
  SparseAttentionInput input = layer.input;
  const AttentionInputs tensors(Materialize(*layer.attention.patterns(), 9, 3));
  input.pattern = tensors.Softmax(QuerySide::kLong, 2, 9, 3, 3);
  if (GetParam() == AttentionImplementation::kKernel) {
    EXPECT_THROW(Run(input), c10::Error);
    return;
  }
  EXPECT_TRUE(Run(input).context.equal(Run(layer.input).context));
}

TEST_P(EveryBackendTest, OnlyTheReferenceHasGradientsOfGradients) {
  const OneLayer layer({.longs = 9});
  const torch::Tensor sum = Run(layer.input).context.sum();
  const auto twice = [&] {
    return torch::autograd::grad({sum}, {layer.input.operands.query}, {},
                                 /*retain_graph=*/true,
                                 /*create_graph=*/true);
  };
  if (IsFused()) {
    EXPECT_THROW(twice(), c10::Error);
  } else {
    EXPECT_TRUE(twice()[0].requires_grad());
  }
}

}  // namespace
}  // namespace etc
