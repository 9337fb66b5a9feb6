// The fused kernels against the float64 reference, forward and backward, over
// three layers through which scores are carried. Outputs may be off twice as
// much as the reference run in float32, gradients three times (ExpectAsExact).
// Sizes straddle the vector, the six queries of a group, the 288 to
// 768 of a tile, the 384 keys of a chunk, the radius and the window; head sizes
// 1 to 130; none, one and many globals; hard and soft patterns, scattered
// segments, examples shorter than their batch; all residual modes and ways of
// storing scores; dropout.
//
// Carried scores are compared where tokens see each other: elsewhere the kernel
// leaves 0.

#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <hwy/targets.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "attention/attention_inputs.h"
#include "attention/pattern_builders.h"
#include "attention/sparse_attention.h"
#include "tests/support/attention_stack.h"
#include "tests/support/backend_agreement.h"
#include "tests/support/tensor_matchers.h"
#include "tests/support/thread_counts.h"

namespace etc {
namespace {

void ExpectKernelMatches(const AttentionCase& c) {
  ExpectMatchesReference(AttentionImplementation::kKernel, c);
}

TEST(CpuBackendTest, MatchesReferenceAtEveryLength) {
  for (const int64_t radius : {1, 2, 5}) {
    for (const int64_t longs :
         {int64_t{1}, radius, radius + 1, 2 * radius, 2 * radius + 1,
          int64_t{6}, int64_t{7}, int64_t{13}, int64_t{47}, int64_t{49}}) {
      for (const bool causal : {false, true}) {
        ExpectKernelMatches(
            {.longs = longs, .radius = radius, .causal = causal});
      }
    }
  }
}

TEST(CpuBackendTest, MatchesReferenceAtEveryHeadSize) {
  for (const int64_t head_dim : {1, 3, 15, 16, 17, 32, 48, 64, 65, 128, 130}) {
    ExpectKernelMatches({.longs = 37,
                         .radius = 4,
                         .head_dim = head_dim,
                         .value_dim = head_dim,
                         .layers = 2});
  }
  ExpectKernelMatches({.longs = 37, .head_dim = 5, .value_dim = 20});
  ExpectKernelMatches({.longs = 37, .head_dim = 20, .value_dim = 5});
}

TEST(CpuBackendTest, MatchesReferenceAcrossTilesAndParts) {
  for (const int64_t longs : {287, 288, 289, 385, 800}) {
    for (const bool causal : {false, true}) {
      ExpectKernelMatches({.longs = longs,
                           .globals = 50,
                           .radius = 20,
                           .heads = 1,
                           .layers = 2,
                           .borders = Borders::kNone,
                           .causal = causal});
    }
  }
  // Parts shorter than the radius; windows that are packed at once, and in
  // chunks.
  for (const int64_t radius : {250, 650}) {
    for (const bool causal : {false, true}) {
      ExpectKernelMatches({.longs = radius + 100,
                           .globals = 3,
                           .radius = radius,
                           .heads = 1,
                           .layers = 2,
                           .causal = causal,
                           .distance = 12});
    }
  }
  // Many heads have longer tiles: one of 576.
  ExpectKernelMatches({.longs = 570,
                       .globals = 0,
                       .radius = 4,
                       .heads = 65,
                       .layers = 1,
                       .borders = Borders::kNone});
  // Distances far beyond the sequence.
  ExpectKernelMatches({.longs = 20, .radius = 3, .distance = 100});
  // More globals than a tile and a chunk have room for.
  ExpectKernelMatches({.longs = 100,
                       .globals = 400,
                       .radius = 10,
                       .heads = 1,
                       .layers = 2,
                       .hard = true});
}

// BERT's shape: one tile and several, one chunk of keys and three.
TEST(CpuBackendTest, MatchesReferenceWithoutLongTokens) {
  const AttentionCase c = {.longs = 0,
                           .heads = 1,
                           .layers = 2,
                           .borders = Borders::kPacked,
                           .distance = 0};
  for (const int64_t globals : {250, 400, 800}) {
    AttentionCase packed = c;
    packed.globals = globals;
    ExpectKernelMatches(packed);
    AttentionCase dense = packed;
    dense.borders = Borders::kNone;
    dense.residual = ResidualAttention::kOff;
    ExpectKernelMatches(dense);
  }
  AttentionCase wide = c;
  wide.globals = 130;
  wide.head_dim = 64;
  wide.value_dim = 64;
  wide.residual = ResidualAttention::kMean;
  wide.dropout = 0.2;
  ExpectKernelMatches(wide);
}

TEST(CpuBackendTest, MatchesReferenceWhenSegmentsAreScattered) {
  for (const bool hard : {false, true}) {
    for (const int64_t longs : {10, 60, 210}) {
      ExpectKernelMatches({.longs = longs,
                           .globals = 20,
                           .radius = 9,
                           .layers = 2,
                           .borders = Borders::kScattered,
                           .hard = hard,
                           .causal = longs == 60});
    }
  }
}

TEST(CpuBackendTest, MatchesReferenceOnEveryTarget) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    ExpectKernelMatches({.longs = 75,
                         .globals = 9,
                         .radius = 12,
                         .head_dim = 19,
                         .value_dim = 33,
                         .layers = 2,
                         .dropout = 0.2});
    ExpectKernelMatches({.longs = 75,
                         .globals = 9,
                         .radius = 21,
                         .head_dim = 19,
                         .value_dim = 33,
                         .layers = 2,
                         .causal = true,
                         .dropout = 0.2});
    ExpectKernelMatches({.longs = 61,
                         .radius = 12,
                         .residual = ResidualAttention::kOff,
                         .hard = true});
  }
  hwy::SetSupportedTargetsForTest(0);
}

// Forward and backward, with scores in a buffer, whose subtraction leaves them
// off by their rounding: above the largest of their row, too.
TEST(CpuBackendTest, StaysFiniteAtScoresOfABillionOnEveryTarget) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    for (const ScoreStorage storage :
         {ScoreStorage::kStore, ScoreStorage::kReverse}) {
      const AttentionCase c = {.longs = 75, .globals = 9, .radius = 12};
      torch::manual_seed(1);
      AttentionStack stack =
          AttentionStack(c, QuerySide::kLong, MakeAttention(c))
              .As(torch::kFloat32);
      for (SparseAttentionInput& input : stack.layers) {
        const torch::NoGradGuard no_grad;
        input.operands.query.mul_(1e9);
      }
      for (const torch::Tensor& result :
           RunLayers(&stack, AttentionImplementation::kKernel, storage)
               .Tensors()) {
        EXPECT_TRUE(result.isfinite().all().item<bool>());
      }
    }
  }
  hwy::SetSupportedTargetsForTest(0);
}

TEST(CpuBackendTest, GivesTheSameBitsOnAnyNumberOfThreads) {
  const AttentionCase c = {.longs = 1300,
                           .globals = 200,
                           .radius = 30,
                           .heads = 3,
                           .layers = 2,
                           .hard = true,
                           .dropout = 0.1};
  const AttentionCase without_long_tokens = {.longs = 0,
                                             .globals = 600,
                                             .heads = 3,
                                             .layers = 2,
                                             .borders = Borders::kPacked,
                                             .dropout = 0.1};
  AttentionCase causal = c;
  causal.causal = true;
  using Run = std::pair<AttentionCase, QuerySide>;
  for (const auto& [run, side] :
       {Run{c, QuerySide::kLong}, Run{c, QuerySide::kGlobal},
        Run{causal, QuerySide::kLong},
        Run{without_long_tokens, QuerySide::kGlobal}}) {
    SCOPED_TRACE(run.Name() + " " + std::to_string(static_cast<int>(side)));
    torch::manual_seed(1);
    const AttentionInputs attention = MakeAttention(run);
    const AttentionStack values(run, side, attention);
    ExpectSameOnAnyNumberOfThreads([&] {
      torch::manual_seed(2);
      AttentionStack stack = values.As(torch::kFloat32);
      return RunLayers(&stack, AttentionImplementation::kKernel).Tensors();
    });
  }
}

SparseAttentionOutput RunKernels(const SparseAttentionInput& input) {
  return SparseAttention(input, AttentionImplementation::kKernel);
}

// A layer of float32 leaves.
struct OneLayer {
  explicit OneLayer(const AttentionCase& c) : attention(MakeAttention(c)) {
    torch::manual_seed(4);
    input = AttentionStack(c, QuerySide::kLong, attention)
                .As(torch::kFloat32)
                .layers[0];
  }
  AttentionInputs attention;
  SparseAttentionInput input;
};

// As float32 operands with rounded products: the context is rounded, scores are
// not.
TEST(CpuBackendTest, TakesBfloat16) {
  const OneLayer layer({.longs = 70, .head_dim = 32, .value_dim = 32});
  SparseAttentionInput narrow = layer.input;
  SparseAttentionInput wide = layer.input;
  wide.precision = LinearPrecision::kBfloat16;
  for (torch::Tensor* tensor : AttentionStack::Tensors(&narrow)) {
    *tensor = tensor->detach().to(torch::kBFloat16).requires_grad_(true);
  }
  for (size_t i = 0; i < AttentionStack::Tensors(&narrow).size(); ++i) {
    *AttentionStack::Tensors(&wide)[i] = AttentionStack::Tensors(&narrow)[i]
                                             ->detach()
                                             .to(torch::kFloat32)
                                             .requires_grad_(true);
  }
  const SparseAttentionOutput output = RunKernels(narrow);
  const SparseAttentionOutput expected = RunKernels(wide);
  EXPECT_EQ(output.scores.own->scalar_type(), torch::kFloat32);
  EXPECT_TRUE(output.scores.own->equal(expected.scores.own));
  EXPECT_TRUE(output.context.equal(expected.context.to(torch::kBFloat16)));
  output.context.to(torch::kFloat32).square().sum().backward();
  expected.context.to(torch::kBFloat16)
      .to(torch::kFloat32)
      .square()
      .sum()
      .backward();
  EXPECT_TRUE(narrow.operands.own_key.grad().equal(
      wide.operands.own_key.grad().to(torch::kBFloat16)));
}

TEST(CpuBackendTest, RejectsWhatItDoesNotSupport) {
  const OneLayer layer({.longs = 9});
  SparseAttentionInput bad = layer.input;
  bad.operands.query = bad.operands.query.to(torch::kFloat64);
  EXPECT_THROW(RunKernels(bad), c10::Error);
  bad = layer.input;
  const AttentionInputs tensors(Materialize(*layer.attention.patterns(), 9, 3));
  bad.pattern = tensors.Softmax(QuerySide::kLong, 2, 9, 3, 3);
  EXPECT_THROW(RunKernels(bad), c10::Error);
  EXPECT_NO_THROW(SparseAttention(bad));
  bad = layer.input;
  bad.operands.relative = {};
  EXPECT_THROW(RunKernels(bad), c10::Error);
  bad = layer.input;
  RelativeTable& table = bad.operands.relative;
  table.embedding = table.embedding.narrow(0, 0, 7);
  table.bias = table.bias.narrow(0, 0, 7);
  EXPECT_THROW(RunKernels(bad), c10::Error);
  bad = layer.input;
  bad.dropout = 1.0;
  EXPECT_THROW(RunKernels(bad), c10::Error);
}

TEST(CpuBackendTest, LetsNotANumberThrough) {
  const OneLayer layer({.longs = 40, .borders = Borders::kNone});
  const torch::NoGradGuard no_grad;
  layer.input.operands.own_key[0][1][20] =
      std::numeric_limits<float>::quiet_NaN();
  const torch::Tensor context = RunKernels(layer.input).context;
  EXPECT_TRUE(context[0][1].narrow(0, 17, 7).isnan().all().item<bool>());
  EXPECT_FALSE(context[0][1].narrow(0, 0, 17).isnan().any().item<bool>());
  EXPECT_FALSE(context[0][0].isnan().any().item<bool>());
}

// Three examples of one row. Their lengths are those of whole steps, forward
// and backward, so that a tile of two examples would be one too many: NaN in
// the second one cannot be multiplied away. Results of the others are the same
// bits as without it.
TEST(CpuBackendTest, ComputesNothingBetweenExamples) {
  constexpr int64_t kLength = 96;
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < 3 * kLength; ++i) {
    ids.push_back(i / kLength);
  }
  const AttentionInputs attention(std::vector{
      PatternFromExampleIds({}, ids, {}, {.relative_pos_max_distance = 0})});
  torch::manual_seed(3);
  const auto leaf = [](int64_t length) {
    return torch::randn({1, 2, length, 64}).requires_grad_(true);
  };
  SparseAttentionInput input = {
      .operands = {.query = leaf(3 * kLength),
                   .own_key = leaf(3 * kLength),
                   .own_value = leaf(3 * kLength),
                   .other_key = leaf(0),
                   .other_value = leaf(0)},
      .pattern = attention.Softmax(QuerySide::kGlobal, 1, 0, 3 * kLength, 84)};
  const std::vector<torch::Tensor> leaves = {
      input.operands.query, input.operands.own_key, input.operands.own_value};
  // Context and gradients of the first and the third example.
  const auto run = [&] {
    const torch::Tensor context = RunKernels(input).context;
    std::vector<torch::Tensor> results =
        torch::autograd::grad({context}, leaves, {torch::ones_like(context)});
    results.push_back(context.detach());
    for (torch::Tensor& result : results) {
      result = torch::cat({result.narrow(2, 0, kLength),
                           result.narrow(2, 2 * kLength, kLength)},
                          2);
    }
    return results;
  };
  const std::vector<torch::Tensor> expected = run();
  {
    const torch::NoGradGuard no_grad;
    for (const torch::Tensor& tensor : leaves) {
      tensor.narrow(2, kLength, kLength)
          .fill_(std::numeric_limits<float>::quiet_NaN());
    }
  }
  const std::vector<torch::Tensor> actual = run();
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(actual[i].equal(expected[i])) << i;
    EXPECT_FALSE(actual[i].isnan().any().item<bool>()) << i;
  }
}

}  // namespace
}  // namespace etc
