// Patterns from masks, windows and documents: the keys that each query sees,
// against loops over all pairs; their runs against their masks; attention over
// them by the kernels and the blocked backend against the reference in float64,
// with relative ids and gradients (ExpectAsExact states the tolerance); and
// errors with what they say.

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>

#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "attention/dot_product_attention.h"
#include "attention/softmax_pattern.h"
#include "tests/support/error_message.h"
#include "tests/support/exactness.h"
#include "tests/support/run_masks.h"
#include "tests/support/tensor_matchers.h"

namespace etc {
namespace {

// The mask of the pattern's only block of keys, in the columns of scores.
torch::Tensor MaskOfScores(const SoftmaxPattern& pattern) {
  const SoftmaxMasks masks = pattern.masks(torch::kCPU);
  return torch::cat({masks.own_mask, masks.other_mask}, -1);
}

// [B, T, S]: the same over all keys.
torch::Tensor MaskOfKeys(const SoftmaxPattern& pattern) {
  const torch::Tensor mask = MaskOfScores(pattern);
  const int64_t before = pattern.window.before;
  if (before < 0) {
    return mask;
  }
  torch::Tensor all = torch::zeros(
      {pattern.batch, pattern.queries, pattern.own_keys}, torch::kBool);
  for (int64_t i = 0; i < pattern.queries; ++i) {
    for (int64_t w = 0; w < mask.size(2); ++w) {
      const int64_t j = i + w - before;
      if (j >= 0 && j < pattern.own_keys) {
        all.select(1, i).select(1, j).copy_(mask.select(1, i).select(1, w));
      } else {
        EXPECT_FALSE(mask.select(1, i).select(1, w).any().item<bool>());
      }
    }
  }
  return all;
}

// True where query i of example b sees key j.
using Sees = std::function<bool(int64_t b, int64_t i, int64_t j)>;

void ExpectVisible(const SoftmaxPattern& pattern, const Sees& sees) {
  const torch::Tensor mask = MaskOfKeys(pattern);
  ASSERT_EQ(mask.sizes(),
            at::IntArrayRef({pattern.batch, pattern.queries, pattern.keys()}));
  for (int64_t b = 0; b < pattern.batch; ++b) {
    for (int64_t i = 0; i < pattern.queries; ++i) {
      for (int64_t j = 0; j < pattern.keys(); ++j) {
        EXPECT_EQ(mask[b][i][j].item<bool>(), sees(b, i, j))
            << "example " << b << ", query " << i << ", key " << j;
      }
    }
  }
  if (pattern.runs != nullptr) {
    ExpectRunsMatchMasks(pattern);
  }
}

const std::vector<std::pair<int64_t, int64_t>>& Sizes() {
  static const std::vector<std::pair<int64_t, int64_t>> sizes = {
      {1, 1}, {6, 6}, {11, 11}, {4, 9}, {9, 4}, {5, 0}, {0, 5}};
  return sizes;
}

TEST(MaskPatternTest, WithoutLengthsEachExampleFillsTheBatch) {
  ExpectVisible(AllKeysPattern({.queries = 3, .keys = 4, .batch = 2}),
                [](int64_t, int64_t, int64_t) { return true; });
  ExpectVisible(CausalPattern({.queries = 4, .keys = 4, .batch = 2}),
                [](int64_t, int64_t i, int64_t j) { return j <= i; });
}

TEST(MaskPatternTest, WindowsReachToBothSides) {
  for (const auto& [queries, keys] : Sizes()) {
    for (const KeyWindow window :
         {KeyWindow{0, 0}, KeyWindow{2, 0}, KeyWindow{1, 3}, KeyWindow{9, 9}}) {
      const std::vector<SequenceLengths> lengths = {
          {queries, keys}, {(queries + 1) / 2, (keys + 1) / 2}};
      ExpectVisible(
          WindowPattern({.queries = queries, .keys = keys, .lengths = lengths},
                        window),
          [&](int64_t b, int64_t i, int64_t j) {
            const SequenceLengths& length = lengths[static_cast<size_t>(b)];
            return i < length.queries && j < length.keys &&
                   j >= i - window.before && j <= i + window.after;
          });
    }
  }
}

// Bands of scores take O(T) memory; elsewhere they would be no smaller.
TEST(MaskPatternTest, AWindowIsOfOwnKeysWhereItIsShorterThanTheSequence) {
  const auto pattern = [](int64_t queries, int64_t keys,
                          const KeyWindow& window) {
    return WindowPattern({.queries = queries, .keys = keys, .batch = 2},
                         window);
  };
  const SoftmaxPattern band = pattern(9, 9, {.before = 3, .after = 1});
  EXPECT_EQ(band.own_keys, 9);
  EXPECT_EQ(band.other_keys, 0);
  EXPECT_EQ(band.window.before, 3);
  EXPECT_EQ(band.window.after, 1);
  EXPECT_EQ(band.own_columns(), 5);
  EXPECT_TRUE(band.has_one_block());
  // One run for all queries: the window is what restricts them.
  EXPECT_EQ((*band.runs)[0].own.visible.runs.size(), 1u);
  const int64_t most = std::numeric_limits<int64_t>::max();
  for (const SoftmaxPattern& dense :
       {pattern(9, 9, {.before = 8}), pattern(9, 12, {.before = 2}),
        pattern(12, 9, {.before = 2}), pattern(9, 9, {most, most})}) {
    EXPECT_EQ(dense.own_keys, 0);
    EXPECT_LT(dense.window.before, 0);
    EXPECT_TRUE(dense.has_one_block());
  }
}

TEST(MaskPatternTest, MasksBroadcastOverBatchAndQueries) {
  torch::manual_seed(1);
  const int64_t batch = 3;
  for (const auto& [queries, keys] : Sizes()) {
    const KeyPatternOptions options = {
        .queries = queries, .keys = keys, .batch = batch};
    for (const std::vector<int64_t>& shape :
         std::vector<std::vector<int64_t>>{{queries, keys},
                                           {1, keys},
                                           {batch, queries, keys},
                                           {1, queries, keys},
                                           {batch, 1, keys},
                                           {batch, queries, 1}}) {
      const torch::Tensor mask = torch::randint(0, 2, shape, torch::kInt64);
      const torch::Tensor whole = mask.expand({batch, queries, keys});
      for (const torch::Tensor& given :
           {mask, mask.to(torch::kBool), mask.to(torch::kInt32)}) {
        const Sees sees = [&](int64_t b, int64_t i, int64_t j) {
          return whole[b][i][j].item<int64_t>() == 1;
        };
        ExpectVisible(PatternFromMask(given, options), sees);
        const SoftmaxPattern dense = DensePattern(given, options);
        EXPECT_EQ(dense.runs, nullptr);
        ExpectVisible(dense, sees);
      }
    }
  }
}

// A transposed mask has other strides.
TEST(MaskPatternTest, MasksNeedNotBeContiguous) {
  torch::manual_seed(2);
  const torch::Tensor mask = torch::randint(0, 2, {5, 7}).to(torch::kBool).t();
  ExpectVisible(
      PatternFromMask(mask, {.queries = 7, .keys = 5, .batch = 1}),
      [&](int64_t, int64_t i, int64_t j) { return mask[i][j].item<bool>(); });
}

TEST(MaskPatternTest, OnlyKeysLeavesOutPaddingAnywhere) {
  torch::manual_seed(3);
  for (const auto& [queries, keys] : Sizes()) {
    const KeyPatternOptions options = {
        .queries = queries, .keys = keys, .batch = 3};
    const torch::Tensor mask = torch::randint(0, 2, {3, keys}, torch::kInt64);
    const auto is_token = [&](int64_t b, int64_t j) {
      return mask[b][j].item<int64_t>() == 1;
    };
    ExpectVisible(
        OnlyKeys(AllKeysPattern(options), mask),
        [&](int64_t b, int64_t, int64_t j) { return is_token(b, j); });
    ExpectVisible(OnlyKeys(CausalPattern(options), mask.to(torch::kBool)),
                  [&](int64_t b, int64_t i, int64_t j) {
                    return j <= i && is_token(b, j);
                  });
    ExpectVisible(
        OnlyKeys(WindowPattern(options, {.before = 1, .after = 2}), mask),
        [&](int64_t b, int64_t i, int64_t j) {
          return j >= i - 1 && j <= i + 2 && is_token(b, j);
        });
    const torch::Tensor ones = torch::ones({queries, keys}, torch::kBool);
    ExpectVisible(
        OnlyKeys(DensePattern(ones, options), mask),
        [&](int64_t b, int64_t, int64_t j) { return is_token(b, j); });
  }
}

TEST(MaskPatternTest, OnlyDocumentsIsBlockDiagonal) {
  torch::manual_seed(4);
  for (const auto& [queries, keys] : Sizes()) {
    const KeyPatternOptions options = {
        .queries = queries, .keys = keys, .batch = 2};
    const torch::Tensor of_queries =
        torch::randint(0, 3, {2, queries}, torch::kInt64);
    const torch::Tensor of_keys =
        torch::randint(0, 3, {2, keys}, torch::kInt64).to(torch::kInt32);
    const auto together = [&](int64_t b, int64_t i, int64_t j) {
      const auto id = of_queries[b][i].item<int64_t>();
      return id != 0 && id == of_keys[b][j].item<int64_t>();
    };
    ExpectVisible(OnlyDocuments(AllKeysPattern(options), of_queries, of_keys),
                  together);
    ExpectVisible(OnlyDocuments(WindowPattern(options, {.before = 2}),
                                of_queries, of_keys),
                  [&](int64_t b, int64_t i, int64_t j) {
                    return j <= i && j >= i - 2 && together(b, i, j);
                  });
  }
}

// Inputs of two heads for a pattern of two examples, as leaves of `dtype`.
DotProductAttentionInput InputFor(const SoftmaxPattern& pattern,
                                  int64_t distance, torch::ScalarType dtype) {
  torch::manual_seed(7);
  const auto leaf = [&](std::vector<int64_t> shape) {
    return torch::randn(shape).to(dtype).requires_grad_(true);
  };
  DotProductAttentionInput input;
  input.query = leaf({pattern.batch, 2, pattern.queries, 8});
  input.key = leaf({pattern.batch, 2, pattern.keys(), 8});
  input.value = leaf({pattern.batch, 2, pattern.keys(), 5});
  if (distance > 0) {
    input.relative = {.embedding = leaf({2 * distance + 4, 2, 8}),
                      .bias = leaf({2 * distance + 4, 2})};
  }
  input.pattern = pattern;
  input.residual.mode = ResidualAttention::kSum;
  return input;
}

// The context and the scores that count, and the gradients of a scalar in which
// each has a part.
std::vector<torch::Tensor> RunWithGradients(
    const SoftmaxPattern& pattern, int64_t distance, torch::ScalarType dtype,
    AttentionImplementation implementation) {
  const DotProductAttentionInput input = InputFor(pattern, distance, dtype);
  const DotProductAttentionOutput output =
      DotProductAttention(input, implementation);
  const torch::Tensor scores =
      *output.scores.sum * MaskOfScores(pattern).unsqueeze(1).to(dtype);
  std::vector<torch::Tensor> leaves = {input.query, input.key, input.value};
  if (distance > 0) {
    leaves.insert(leaves.end(),
                  {input.relative.embedding, input.relative.bias});
  }
  std::vector<torch::Tensor> all = torch::autograd::grad(
      {output.context.sin().sum() + scores.cos().sum()}, leaves);
  all.push_back(output.context.detach());
  all.push_back(scores.detach());
  return all;
}

void ExpectBackendsAgree(const SoftmaxPattern& pattern, int64_t distance) {
  const auto exact = RunWithGradients(pattern, distance, torch::kFloat64,
                                      AttentionImplementation::kReference);
  const auto reference = RunWithGradients(pattern, distance, torch::kFloat32,
                                          AttentionImplementation::kReference);
  const auto kernel = RunWithGradients(pattern, distance, torch::kFloat32,
                                       AttentionImplementation::kKernel);
  ExpectAsExact(kernel, reference, exact, 3.0, "kernel, tensor");
  const auto blocked = RunWithGradients(pattern, distance, torch::kFloat64,
                                        AttentionImplementation::kBlocked);
  for (size_t i = 0; i < exact.size(); ++i) {
    EXPECT_TRUE(IsClose(blocked[i], exact[i], 1e-12)) << "blocked " << i;
  }
}

TEST(MaskPatternTest, BackendsAgree) {
  torch::manual_seed(5);
  for (const int64_t distance : {0, 3}) {
    const KeyPatternOptions options = {
        .queries = 75, .keys = 90, .batch = 2, .max_distance = distance};
    ExpectBackendsAgree(WindowPattern(options, {.before = 13}), distance);
    ExpectBackendsAgree(
        PatternFromMask(torch::randint(0, 3, {2, 75, 90}).gt(0), options),
        distance);
    const torch::Tensor tokens = torch::randint(0, 5, {2, 90}).gt(0);
    ExpectBackendsAgree(OnlyKeys(CausalPattern(options), tokens), distance);
    const torch::Tensor ids = torch::arange(180).div(35, "floor").view({2, 90});
    ExpectBackendsAgree(OnlyDocuments(AllKeysPattern(options),
                                      ids.narrow(1, 0, 75).contiguous(), ids),
                        distance);
  }
}

TEST(MaskPatternTest, BackendsAgreeInWindowsOfOwnKeys) {
  for (const int64_t distance : {0, 3}) {
    const KeyPatternOptions options = {.queries = 75,
                                       .keys = 75,
                                       .lengths = {{75, 75}, {40, 36}},
                                       .max_distance = distance};
    const SoftmaxPattern before = WindowPattern(options, {.before = 13});
    ExpectBackendsAgree(before, distance);
    ExpectBackendsAgree(WindowPattern(options, {.after = 7}), distance);
    ExpectBackendsAgree(WindowPattern(options, {.before = 4, .after = 30}),
                        distance);
    torch::manual_seed(6);
    const torch::Tensor tokens = torch::randint(0, 5, {2, 75}).gt(0);
    ExpectBackendsAgree(OnlyKeys(before, tokens), distance);
    const torch::Tensor ids =
        torch::arange(150).div(29, "floor").remainder(3).view({2, 75});
    ExpectBackendsAgree(OnlyDocuments(before, ids, ids), distance);
    ExpectBackendsAgree(
        OnlyQueries(before, torch::tensor({0, 3, 70, 80}, torch::kInt64)),
        distance);
  }
}

// The same keys as a mask, whose scores are dense.
TEST(MaskPatternTest, AWindowIsWhatItsMaskIs) {
  for (const int64_t distance : {0, 3}) {
    const KeyPatternOptions options = {
        .queries = 60, .keys = 60, .batch = 2, .max_distance = distance};
    const SoftmaxPattern window =
        WindowPattern(options, {.before = 9, .after = 2});
    const SoftmaxPattern dense = PatternFromMask(MaskOfKeys(window), options);
    ASSERT_LT(dense.window.before, 0);
    for (const AttentionImplementation implementation :
         {AttentionImplementation::kReference,
          AttentionImplementation::kBlocked}) {
      const auto actual =
          RunWithGradients(window, distance, torch::kFloat64, implementation);
      const auto expected =
          RunWithGradients(dense, distance, torch::kFloat64, implementation);
      // All but the scores: the context, and gradients of both.
      for (size_t i = 0; i + 1 < expected.size(); ++i) {
        EXPECT_EQ(actual[i].sizes(), expected[i].sizes());
      }
      EXPECT_EQ(actual.back().size(3), 12);
      const size_t context = expected.size() - 2;
      EXPECT_TRUE(IsClose(actual[context], expected[context], 1e-12));
      EXPECT_TRUE(IsClose(actual.back().pow(2).sum(),
                          expected.back().pow(2).sum(), 1e-9));
    }
  }
}

TEST(MaskPatternTest, ARunOfKeysTooManyIsForTensors) {
  const int64_t most_runs = MostRuns(0);
  const int64_t keys = 2 * most_runs + 1;
  ASSERT_EQ(MostRuns(keys), most_runs);
  const KeyPatternOptions options = {.queries = 2, .keys = keys, .batch = 1};
  torch::Tensor mask = torch::arange(keys).remainder(2).eq(1);
  mask = torch::stack({torch::ones({keys}, torch::kBool), mask});
  const SoftmaxPattern most = PatternFromMask(mask, options);
  EXPECT_EQ((*most.runs)[0].other.visible.runs.size(), most_runs + 1);
  mask = torch::stack({mask[0], mask[1].logical_not()});
  const SoftmaxPattern dense = PatternFromMask(mask, options);
  EXPECT_EQ(dense.runs, nullptr);
  const DotProductAttentionInput input = InputFor(dense, 0, torch::kFloat64);
  const torch::Tensor expected =
      DotProductAttention(input, AttentionImplementation::kReference).context;
  EXPECT_TRUE(IsClose(DotProductAttention(input).context, expected, 1e-12));
  EXPECT_THROW(DotProductAttention(input, AttentionImplementation::kKernel),
               c10::Error);
}

// Masks that an evaluation made serve a backward pass later.
TEST(MaskPatternTest, KeepsTensorsAsTheyWereGiven) {
  const KeyPatternOptions options = {.queries = 4, .keys = 4, .batch = 1};
  const SoftmaxPattern all = AllKeysPattern(options);
  torch::Tensor mask = torch::zeros({1, 4, 4}, torch::kBool);
  torch::Tensor keys = torch::zeros({1, 4}, torch::kBool);
  torch::Tensor ids = torch::zeros({1, 4}, torch::kInt32);
  const SoftmaxPattern patterns[] = {
      DensePattern(mask, options), PatternFromMask(mask, options),
      OnlyKeys(all, keys), OnlyDocuments(all, ids, ids)};
  mask.fill_(true);
  keys.fill_(true);
  ids.fill_(1);
  for (const SoftmaxPattern& pattern : patterns) {
    EXPECT_FALSE(MaskOfScores(pattern).any().item<bool>());
  }
}

TEST(MaskPatternTest, MasksAreNoTensorsOfInferenceMode) {
  const KeyPatternOptions options = {
      .queries = 5, .keys = 5, .batch = 1, .max_distance = 2};
  std::vector<SoftmaxMasks> masks;
  {
    const c10::InferenceMode inference;
    const torch::Tensor mask = torch::ones({1, 5, 5}, torch::kBool);
    for (const SoftmaxPattern& pattern :
         {CausalPattern(options), DensePattern(mask, options)}) {
      masks.push_back(pattern.masks(torch::kCPU));
    }
  }
  for (const SoftmaxMasks& made : masks) {
    EXPECT_FALSE(made.other_ids.is_inference());
  }
}

TEST(MaskPatternTest, SaysWhatItExpected) {
  const KeyPatternOptions options = {.queries = 3, .keys = 5, .batch = 2};
  const torch::Tensor good = torch::ones({3, 5}, torch::kBool);
  EXPECT_THAT(
      MessageOf([&] { PatternFromMask(good.to(torch::kFloat32), options); }),
      testing::HasSubstr("mask should be bool, or integers 0 and 1"));
  EXPECT_THAT(
      MessageOf([&] { PatternFromMask(good.narrow(1, 0, 4), options); }),
      testing::HasSubstr("mask should be [queries, keys] = [3, 5] or [batch, "
                         "queries, keys] = [2, 3, 5], where 1 stands for all, "
                         "but is [3, 4]"));
  EXPECT_THROW(PatternFromMask(good.expand({3, 3, 5}), options), c10::Error);
  EXPECT_THROW(PatternFromMask(good.expand({2, 1, 3, 5}), options), c10::Error);
  EXPECT_THROW(PatternFromMask(torch::Tensor(), options), c10::Error);
  EXPECT_THROW(DensePattern(good.t(), options), c10::Error);
  const SoftmaxPattern all = AllKeysPattern(options);
  const torch::Tensor keys = torch::ones({2, 5}, torch::kBool);
  EXPECT_THAT(
      MessageOf([&] { OnlyKeys(all, keys.narrow(0, 0, 1)); }),
      testing::HasSubstr("mask should be [batch, keys] = [2, 5], but is "
                         "[1, 5]"));
  EXPECT_THAT(MessageOf([&] { OnlyKeys(all, keys.to(torch::kFloat64)); }),
              testing::HasSubstr("mask should be bool, or integers 0 and 1"));
  EXPECT_THROW(OnlyKeys(all, torch::Tensor()), c10::Error);
  const torch::Tensor ids = torch::ones({2, 5}, torch::kInt64);
  const torch::Tensor query_ids = torch::ones({2, 3}, torch::kInt64);
  EXPECT_NO_THROW(OnlyDocuments(all, query_ids, ids));
  EXPECT_THAT(
      MessageOf([&] { OnlyDocuments(all, ids, ids); }),
      testing::HasSubstr("query_ids should be [batch, length] = [2, 3]"));
  EXPECT_THAT(MessageOf([&] { OnlyDocuments(all, query_ids, -ids); }),
              testing::HasSubstr("key_ids should be from 0 to 2^31 - 1"));
  EXPECT_THAT(
      MessageOf(
          [&] { OnlyDocuments(all, query_ids, ids.to(torch::kFloat32)); }),
      testing::HasSubstr("key_ids should be int64 or int32, but is Float"));
  EXPECT_THROW(WindowPattern(options, {.before = -1}), c10::Error);
  EXPECT_THROW(AllKeysPattern({.queries = 3, .keys = 5, .batch = -1}),
               c10::Error);
  EXPECT_THROW(AllKeysPattern(
                   {.queries = 3, .keys = 5, .batch = 2, .lengths = {{3, 5}}}),
               c10::Error);
  EXPECT_THROW(AllKeysPattern(
                   {.queries = 3, .keys = 5, .batch = 0, .lengths = {{3, 5}}}),
               c10::Error);
  const KeyPatternOptions unset = {.queries = 3, .keys = 5};
  for (const auto& make : std::vector<std::function<void()>>{
           [&] { AllKeysPattern(unset); }, [&] { CausalPattern(unset); },
           [&] { WindowPattern(unset, {.before = 1}); },
           [&] { PatternFromMask(good, unset); },
           [&] { DensePattern(good, unset); }}) {
    EXPECT_THAT(MessageOf(make),
                testing::HasSubstr("batch should be the number of examples"));
  }
}

}  // namespace
}  // namespace etc
