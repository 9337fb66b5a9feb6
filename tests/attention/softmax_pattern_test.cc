// Patterns over one block of keys: the keys that each query sees and their
// relative ids, against loops over all pairs, for T < S, T = S and T > S, with
// padding and without tokens; and errors. All are exact.

#include "attention/softmax_pattern.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <limits>
#include <utility>
#include <vector>

#include "attention/pattern.h"

namespace etc {
namespace {

// Examples that fill the batch, that are shorter, and that are empty.
std::vector<KeyPatternOptions> AllOptions() {
  std::vector<KeyPatternOptions> all;
  for (const auto& [queries, keys] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 1}, {5, 5}, {3, 8}, {8, 3}, {4, 0}, {0, 4}}) {
    all.push_back({.queries = queries,
                   .keys = keys,
                   .lengths = {{queries, keys},
                               {(queries + 1) / 2, (keys + 1) / 2},
                               {queries, keys / 2},
                               {0, 0}}});
  }
  return all;
}

void ExpectVisible(const SoftmaxPattern& pattern,
                   const KeyPatternOptions& options, bool causal) {
  const auto batch = static_cast<int64_t>(options.lengths.size());
  ASSERT_EQ(pattern.batch, batch);
  ASSERT_EQ(pattern.queries, options.queries);
  ASSERT_EQ(pattern.own_columns(), 0);
  ASSERT_EQ(pattern.other_keys, options.keys);
  const SoftmaxMasks masks = pattern.masks(torch::kCPU);
  ASSERT_EQ(masks.own_mask.sizes(),
            at::IntArrayRef({batch, options.queries, 0}));
  ASSERT_EQ(masks.other_mask.sizes(),
            at::IntArrayRef({batch, options.queries, options.keys}));
  for (int64_t b = 0; b < batch; ++b) {
    const SequenceLengths length = options.lengths[static_cast<size_t>(b)];
    for (int64_t i = 0; i < options.queries; ++i) {
      for (int64_t j = 0; j < options.keys; ++j) {
        EXPECT_EQ(masks.other_mask[b][i][j].item<bool>(),
                  i < length.queries && j < length.keys && (!causal || j <= i))
            << "example " << b << ", query " << i << ", key " << j;
      }
    }
  }
}

TEST(SoftmaxPatternTest, LetsQueriesSeeAllKeys) {
  for (const KeyPatternOptions& options : AllOptions()) {
    ExpectVisible(AllKeysPattern(options), options, /*causal=*/false);
  }
}

TEST(SoftmaxPatternTest, LetsCausalQueriesSeeKeysUpToTheirOwn) {
  for (const KeyPatternOptions& options : AllOptions()) {
    ExpectVisible(CausalPattern(options), options, /*causal=*/true);
  }
}

TEST(SoftmaxPatternTest, MayLeaveOutQueries) {
  for (const KeyPatternOptions& options : AllOptions()) {
    const SoftmaxPattern all = CausalPattern(options);
    std::vector<int64_t> rows;  // every second query
    for (int64_t row = 1; row < all.batch * all.queries; row += 2) {
      rows.push_back(row);
    }
    const SoftmaxPattern some =
        OnlyQueries(all, torch::tensor(rows, torch::kInt64));
    const torch::Tensor had = all.masks(torch::kCPU).other_mask;
    const torch::Tensor has = some.masks(torch::kCPU).other_mask;
    for (int64_t row = 0; row < all.batch * all.queries; ++row) {
      const int64_t b = row / all.queries;
      const int64_t i = row % all.queries;
      const torch::Tensor expected =
          row % 2 == 1 ? had[b][i] : torch::zeros_like(had[b][i]);
      EXPECT_TRUE(has[b][i].equal(expected)) << "row " << row;
      const RunSetTable& visible =
          (*some.runs)[static_cast<size_t>(b)].other.visible;
      const auto query = static_cast<size_t>(i);
      EXPECT_EQ(visible.first[query] < visible.last[query],
                expected.any().item<bool>())
          << "row " << row;
    }
  }
}

TEST(SoftmaxPatternTest, HasRunsThatItsMasksFollow) {
  const KeyPatternOptions options = {.queries = 3, .keys = 7};
  const SoftmaxPattern pattern =
      PatternFromRuns({{.runs = {{0, 2}, {3, 4}, {5, 7}},
                        .first = {0, 1, 2},
                        .last = {2, 3, 2}}},
                      options);
  const torch::Tensor expected = torch::tensor(
      {{1, 1, 0, 1, 0, 0, 0}, {0, 0, 0, 1, 0, 1, 1}, {0, 0, 0, 0, 0, 0, 0}},
      torch::kInt64);
  EXPECT_TRUE(pattern.masks(torch::kCPU)
                  .other_mask[0]
                  .to(torch::kInt64)
                  .equal(expected));
}

// Two documents, every second token of each: a copy of a document's runs for
// each of its queries would be 2,000,000 runs.
TEST(SoftmaxPatternTest, SharesTheRunsOfMixedDocuments) {
  constexpr int64_t kTokens = 2000;
  const KeyPatternOptions options = {
      .queries = kTokens, .keys = kTokens, .batch = 1};
  const torch::Tensor ids =
      torch::arange(kTokens, torch::kInt64).remainder(2).add(1).unsqueeze(0);
  const auto runs = [&](const SoftmaxPattern& pattern) {
    const SoftmaxPattern documents = OnlyDocuments(pattern, ids, ids);
    const SoftmaxRuns& of_example = (*documents.runs)[0];
    return static_cast<int64_t>(of_example.own.visible.runs.size() +
                                of_example.other.visible.runs.size());
  };
  EXPECT_EQ(runs(AllKeysPattern(options)), kTokens);
  EXPECT_EQ(runs(WindowPattern(options, {.before = 3, .after = 3})), kTokens);
}

TEST(SoftmaxPatternTest, HasIdsByDistance) {
  KeyPatternOptions options = {.queries = 4, .keys = 6, .lengths = {{4, 6}}};
  EXPECT_TRUE(AllKeysPattern(options).has_no_ids());
  EXPECT_FALSE(AllKeysPattern(options).masks(torch::kCPU).other_ids.defined());
  options.max_distance = 2;
  const SoftmaxPattern pattern = AllKeysPattern(options);
  EXPECT_FALSE(pattern.has_no_ids());
  const SoftmaxMasks masks = pattern.masks(torch::kCPU);
  EXPECT_EQ(masks.own_ids.sizes(), at::IntArrayRef({1, 4, 0}));
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 6; ++j) {
      EXPECT_EQ(masks.other_ids[0][i][j].item<int64_t>(), RelativeId(j - i, 2));
    }
  }
}

TEST(SoftmaxPatternTest, RejectsWhatDoesNotFit) {
  const KeyPatternOptions good = {.queries = 2, .keys = 5};
  const auto make = [&](std::vector<KeyRun> runs) {
    const auto last = static_cast<int32_t>(runs.size());
    return PatternFromRuns(
        {{.runs = std::move(runs), .first = {0, 0}, .last = {last, 0}}}, good);
  };
  EXPECT_NO_THROW(make({{0, 2}, {3, 5}}));
  EXPECT_THROW(make({{3, 5}, {0, 2}}), c10::Error);  // descend
  EXPECT_THROW(make({{0, 2}, {2, 5}}), c10::Error);  // touch
  EXPECT_THROW(make({{0, 6}}), c10::Error);          // beyond the keys
  EXPECT_THROW(make({{-1, 2}}), c10::Error);
  EXPECT_THROW(make({{2, 2}}), c10::Error);  // empty
  EXPECT_THROW(PatternFromRuns({EmptySets(3)}, good), c10::Error);
  EXPECT_THROW(
      PatternFromRuns({{.runs = {}, .first = {0, 0}, .last = {1, 0}}}, good),
      c10::Error);
  EXPECT_THROW(AllKeysPattern({.queries = 2, .keys = 5, .lengths = {{3, 5}}}),
               c10::Error);
  EXPECT_THROW(CausalPattern({.queries = 2, .keys = 5, .lengths = {{2, 6}}}),
               c10::Error);
  const auto distant = [](int64_t distance) {
    return CausalPattern(
        {.queries = 2, .keys = 5, .batch = 1, .max_distance = distance});
  };
  EXPECT_NO_THROW(distant(kMostRelativeDistance));
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  for (const int64_t distance : {int64_t{-1}, kMostRelativeDistance + 1,
                                 kLargest / 2, kLargest - 1, kLargest}) {
    EXPECT_THROW(distant(distance), c10::Error) << distance;
  }
}

}  // namespace
}  // namespace etc
