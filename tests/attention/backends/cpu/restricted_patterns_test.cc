// The fused kernels on patterns of many runs and on packed rows against the
// float64 reference (backend_agreement.h states the tolerance): two layers that
// carry scores, in every storage, with gradients, dropout, relative ids and
// gates. Runs are shorter and longer than a vector and begin anywhere in it.
// Documents are shorter than a tile, so that several share one, longer than the
// longest (768) and of every length between; queries and keys of one may differ
// in number, and padding, which sees nothing, lies before, between and behind
// them. Results are the same bits on any number of threads.

#include <gtest/gtest.h>
#include <hwy/targets.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "attention/attention_inputs.h"
#include "attention/softmax_pattern.h"
#include "attention/sparse_attention.h"
#include "tests/support/attention_stack.h"
#include "tests/support/backend_agreement.h"
#include "tests/support/pattern_layers.h"
#include "tests/support/sanitizers.h"
#include "tests/support/thread_counts.h"

namespace etc {
namespace {

void ExpectKernelsMatch(const SoftmaxPattern& pattern,
                        const PatternLayerOptions& options) {
  ExpectLayersMatchReference(AttentionImplementation::kKernel,
                             LayersOver(pattern, options));
}

// Every mode, with and without dropout; under a sanitizer, which is for
// accesses, the two that do least and most.
void ExpectKernelsMatchInEveryMode(const SoftmaxPattern& pattern,
                                   int64_t distance) {
  std::vector<std::pair<ResidualAttention, double>> variants = {
      {ResidualAttention::kOff, 0.0}, {ResidualAttention::kGate, 0.2}};
  if (!kSanitized) {
    variants.insert(variants.end(), {{ResidualAttention::kOff, 0.2},
                                     {ResidualAttention::kSum, 0.0},
                                     {ResidualAttention::kSum, 0.2},
                                     {ResidualAttention::kGate, 0.0}});
  }
  for (const auto& [residual, dropout] : variants) {
    SCOPED_TRACE("residual " + std::to_string(static_cast<int>(residual)) +
                 " dropout " + std::to_string(dropout));
    ExpectKernelsMatch(
        pattern,
        {.residual = residual, .dropout = dropout, .distance = distance});
  }
}

// [2, length]: holes one by one, in pairs and in long gaps, others in each
// example.
torch::Tensor TokensWithHoles(int64_t length) {
  torch::manual_seed(3);
  torch::Tensor tokens = torch::rand({2, length}).gt(0.1);
  tokens[0].narrow(0, 0, length / 5).fill_(false);
  tokens[1].narrow(0, length / 3, length / 6).fill_(false);
  tokens[1].narrow(0, length / 2, 70).fill_(true);
  return tokens;
}

// Documents of as many queries as keys.
std::vector<PackedDocument> DocumentsOf(
    const std::vector<std::pair<int64_t, int64_t>>& ids_and_lengths) {
  std::vector<PackedDocument> documents;
  for (const auto& [id, length] : ids_and_lengths) {
    documents.push_back({.id = id, .queries = length, .keys = length});
  }
  return documents;
}

const std::vector<std::pair<int64_t, int64_t>>& ManyLengths() {
  static const std::vector<std::pair<int64_t, int64_t>> lengths = {
      {0, 9},  {1, 30},  {2, 1},   {3, 95}, {0, 40}, {4, 150},
      {5, 17}, {6, 400}, {7, 280}, {8, 3},  {0, 25}};
  return lengths;
}

TEST(RestrictedPatternsTest, HolesMatchTheReference) {
  for (const int64_t distance : {0, 3}) {
    const KeyPatternOptions options = {
        .queries = 100, .keys = 500, .batch = 2, .max_distance = distance};
    const torch::Tensor tokens = TokensWithHoles(500);
    ExpectKernelsMatchInEveryMode(OnlyKeys(AllKeysPattern(options), tokens),
                                  distance);
    ExpectKernelsMatch(OnlyKeys(CausalPattern(options), tokens),
                       {.dropout = 0.2, .distance = distance});
  }
}

TEST(RestrictedPatternsTest, HolesInWindowsMatchTheReference) {
  const torch::Tensor tokens = TokensWithHoles(300);
  for (const int64_t distance : {0, 3}) {
    const KeyPatternOptions options = {
        .queries = 300, .keys = 300, .batch = 2, .max_distance = distance};
    ExpectKernelsMatchInEveryMode(
        OnlyKeys(WindowPattern(options, {.before = 70, .after = 9}), tokens),
        distance);
  }
  const AttentionInputs padded = AttentionInputs::Padded(tokens, {}, 5);
  for (const QuerySide side : {QuerySide::kLong, QuerySide::kGlobal}) {
    ExpectKernelsMatchInEveryMode(padded.Softmax(side, 2, 300, 20, 40), 5);
  }
}

// Rows of sets of their own, so that none is like the one before, some of them
// empty. 60 queries are a tile, 420 keys are two chunks; 320 queries are two
// tiles.
TEST(RestrictedPatternsTest, OddRunsMatchTheReference) {
  for (const int64_t width : {5, 21, 90}) {
    const SoftmaxPattern pattern =
        PatternFromMask(MaskOfOddRuns(60, 420, width),
                        {.queries = 60, .keys = 420, .batch = 2});
    ExpectKernelsMatch(pattern, {.residual = ResidualAttention::kOff});
    ExpectKernelsMatch(pattern, {.dropout = 0.2});
  }
  ExpectKernelsMatchInEveryMode(
      PatternFromMask(MaskOfOddRuns(320, 450, 12),
                      {.queries = 320, .keys = 450, .batch = 2}),
      0);
}

// Single keys and single holes.
TEST(RestrictedPatternsTest, RunsOfAKeyMatchTheReference) {
  torch::manual_seed(4);
  for (const double seen : {0.1, 0.9}) {
    const torch::Tensor mask = torch::rand({2, 60, 420}).lt(seen);
    const SoftmaxPattern pattern =
        PatternFromMask(mask, {.queries = 60, .keys = 420, .batch = 2});
    ExpectKernelsMatch(pattern, {.residual = ResidualAttention::kOff});
    ExpectKernelsMatch(pattern, {.dropout = 0.2});
  }
}

// Carried scores and gradients of the previous ones are 0 where a key is not
// seen. Memory that is freed before is not: new tensors get it.
TEST(RestrictedPatternsTest, WriteZerosWhereNothingIsSeen) {
  const int64_t queries = 320;
  const int64_t keys = 450;
  const SoftmaxPattern pattern =
      PatternFromMask(MaskOfOddRuns(queries, keys, 12),
                      {.queries = queries, .keys = keys, .batch = 2});
  const torch::Tensor hidden =
      pattern.masks(torch::kCPU).other_mask.logical_not().unsqueeze(1);
  AttentionStack stack = LayersOver(pattern, {}).As(torch::kFloat32);
  const auto dirty = [&] {
    std::vector<torch::Tensor> tensors;
    for (int n = 0; n < 4; ++n) {
      tensors.push_back(torch::full({2, 1, queries, keys}, 7.0f));
    }
  };
  dirty();
  const SparseAttentionOutput below =
      SparseAttention(stack.layers[0], AttentionImplementation::kKernel);
  EXPECT_EQ((*below.scores.other * hidden).abs().max().item<float>(), 0.0f);
  SparseAttentionInput above = stack.layers[1];
  above.previous = below.scores;
  const torch::Tensor previous =
      below.scores.other->detach().clone().requires_grad_(true);
  above.previous.other = previous;
  dirty();
  const SparseAttentionOutput output =
      SparseAttention(above, AttentionImplementation::kKernel);
  EXPECT_EQ((*output.scores.other * hidden).abs().max().item<float>(), 0.0f);
  dirty();
  output.context.square().sum().backward();
  EXPECT_GT(previous.grad().abs().max().item<float>(), 0.0f);
  EXPECT_EQ((previous.grad() * hidden).abs().max().item<float>(), 0.0f);
}

TEST(RestrictedPatternsTest, PackedDocumentsMatchTheReference) {
  const std::vector<PackedDocument> documents = DocumentsOf(ManyLengths());
  ExpectKernelsMatchInEveryMode(PackedPattern(documents, /*causal=*/false, 3),
                                3);
  ExpectKernelsMatch(PackedPattern(documents, /*causal=*/true, 0),
                     {.dropout = 0.2});
}

// Documents of a token, whose weight is 1, share a tile with others.
TEST(RestrictedPatternsTest, DocumentsOfATokenMatchTheReference) {
  std::vector<std::pair<int64_t, int64_t>> lengths = {
      {1, 70}, {2, 1}, {3, 350}};
  for (int64_t id = 4; id < 60; ++id) {
    lengths.emplace_back(id, 1);
  }
  lengths.emplace_back(60, 20);
  const std::vector<PackedDocument> documents = DocumentsOf(lengths);
  ExpectKernelsMatchInEveryMode(PackedPattern(documents, /*causal=*/false, 2),
                                2);
  ExpectKernelsMatch(PackedPattern(documents, /*causal=*/true, 0), {});
}

// Documents of several tiles and of two parts, beside short ones: of two tiles,
// which is the least; of four and five.
TEST(RestrictedPatternsTest, LongDocumentsMatchTheReference) {
  const auto expect_match = [](int64_t first, int64_t last) {
    ExpectKernelsMatch(
        PackedPattern(DocumentsOf({{1, first}, {2, 10}, {3, last}}),
                      /*causal=*/false, 0),
        {.dropout = 0.1, .distance = 0});
  };
  expect_match(400, 70);
  if (!kSanitized) {
    expect_match(900, 1200);
  }
}

// Cross attention: few queries of many keys, many of few, and keys or queries
// without others.
TEST(RestrictedPatternsTest, PackedCrossAttentionMatchesTheReference) {
  ExpectKernelsMatchInEveryMode(PackedPattern({{1, 10, 400},
                                               {2, 300, 20},
                                               {3, 0, 30},
                                               {4, 25, 0},
                                               {0, 12, 500},
                                               {5, 40, 350}},
                                              /*causal=*/false, 0),
                                0);
}

// The other way around in the keys: nothing divides the row.
TEST(RestrictedPatternsTest, DocumentsInAnotherOrderMatchTheReference) {
  const torch::Tensor ids =
      torch::arange(640).div(160, "floor").add(1).unsqueeze(0);
  const KeyPatternOptions options = {.queries = 640, .keys = 640, .batch = 2};
  ExpectKernelsMatch(
      OnlyDocuments(AllKeysPattern(options), ids.expand({2, 640}).contiguous(),
                    ids.flip(1).expand({2, 640}).contiguous()),
      {.dropout = 0.2});
}

TEST(RestrictedPatternsTest, EveryTargetMatchesTheReference) {
  const SoftmaxPattern packed = PackedPattern(
      DocumentsOf({{1, 33}, {0, 5}, {2, 310}, {3, 7}}), /*causal=*/true, 3);
  const torch::Tensor tokens = TokensWithHoles(150);
  const KeyPatternOptions options = {.queries = 150, .keys = 150, .batch = 2};
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    ExpectKernelsMatch(packed, {.dropout = 0.2, .distance = 3});
    ExpectKernelsMatch(OnlyKeys(AllKeysPattern(options), tokens),
                       {.residual = ResidualAttention::kGate, .dropout = 0.2});
    ExpectKernelsMatch(
        OnlyKeys(WindowPattern(options, {.before = 30, .after = 12}), tokens),
        {.dropout = 0.2});
  }
  hwy::SetSupportedTargetsForTest(0);
}

TEST(RestrictedPatternsTest, GiveTheSameBitsOnAnyNumberOfThreads) {
  const SoftmaxPattern packed =
      PackedPattern(DocumentsOf(ManyLengths()), /*causal=*/false, 3);
  const AttentionStack values =
      LayersOver(packed, {.dropout = 0.1, .distance = 3, .heads = 3});
  for (const ScoreStorage storage :
       {ScoreStorage::kStore, ScoreStorage::kReverse}) {
    ExpectSameOnAnyNumberOfThreads([&] {
      torch::manual_seed(2);
      AttentionStack stack = values.As(torch::kFloat32);
      return RunLayers(&stack, AttentionImplementation::kKernel, storage)
          .Tensors();
    });
  }
}

// Documents of whole steps, as in ComputesNothingBetweenExamples
// (cpu_backend_test.cc), but in keys of another stream and with gradients in
// parts: NaN in one document reaches no other.
TEST(RestrictedPatternsTest, NotANumberStaysInItsDocument) {
  const SoftmaxPattern packed = PackedPattern(
      DocumentsOf({{1, 400}, {2, 500}, {3, 450}}), /*causal=*/false, 0);
  AttentionStack stack = LayersOver(packed, {}).As(torch::kFloat32);
  {
    const torch::NoGradGuard no_grad;
    for (SparseAttentionInput& input : stack.layers) {
      for (torch::Tensor* tensor : AttentionStack::Tensors(&input)) {
        if (tensor->size(2) == packed.queries) {
          (*tensor)[0]
              .narrow(1, 400, 500)
              .fill_(std::numeric_limits<float>::quiet_NaN());
        }
      }
    }
  }
  const StackResult result =
      RunLayers(&stack, AttentionImplementation::kKernel);
  for (const torch::Tensor& tensor : result.Tensors()) {
    if (tensor.dim() == 4 && tensor.size(2) == packed.queries &&
        tensor.size(3) == 8) {
      EXPECT_FALSE(tensor[0].narrow(1, 0, 400).isnan().any().item<bool>());
      EXPECT_FALSE(tensor[0].narrow(1, 900, 450).isnan().any().item<bool>());
      EXPECT_FALSE(tensor[1].narrow(1, 0, 400).isnan().any().item<bool>());
    }
  }
}

}  // namespace
}  // namespace etc
