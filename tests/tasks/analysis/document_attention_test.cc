// VisibleKeys against the definition of AttentionPattern, pair by pair, and
// against the masks in full that the reference computes by; with a window that
// ends at both borders, two segments, two examples, padding, sentences,
// paragraphs, all hard and soft masks and exempt tokens. FindLargest against
// probabilities sorted here: of three layers' worth of rows of 1 to 30 keys,
// fewer and more than are kept. Tolerance: half a unit for each number.

#include "tasks/analysis/document_attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "attention/attention_inputs.h"
#include "attention/pattern.h"

namespace etc {
namespace {

using testing::ElementsAre;

using DocumentMatrix = std::vector<std::vector<bool>>;  // [query][key]

AttentionPattern PatternOfDocument(bool hard_l2g, bool hard_g2l) {
  AttentionPattern pattern;
  pattern.long_segment = {0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, -1};
  pattern.long_example = {0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, -1};
  pattern.sentence = {1, 1, 2, 2, 2, 3, 3, -1, 3, 4, 4, -1};
  pattern.paragraph = {0, 0, 0, 0, 0, 0, 0, 0, -1, 4, 4, -1};
  pattern.linked = {-1, 2, -1, -1, -1, -1, -1, 1, -1, -1, -1, -1};
  pattern.ignore_hard_l2g = {0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0};
  pattern.global_example = {0, 0, 0, 0, 1, -1};
  pattern.global_segment = {0, 0, 1, 1, 2, 0};
  pattern.ignore_hard_g2l = {0, 0, 1, 0, 0, 0};
  pattern.hard_l2g = hard_l2g;
  pattern.hard_g2l = hard_g2l;
  pattern.local_radius = 2;
  pattern.relative_pos_max_distance = 3;
  return pattern;
}

// The definition in attention/pattern.h.
bool Sees(const AttentionPattern& p, int64_t query, int64_t key) {
  const int64_t globals = p.global_length();
  const auto at = [](const auto& values, int64_t index) {
    return static_cast<int64_t>(values[static_cast<size_t>(index)]);
  };
  const auto owns = [&](int64_t g, int64_t i) {
    return at(p.sentence, i) == g || at(p.paragraph, i) == g;
  };
  if (query < globals && key < globals) {
    return at(p.global_example, query) >= 0 &&
           at(p.global_example, query) == at(p.global_example, key);
  }
  if (query >= globals && key >= globals) {
    const int64_t i = query - globals;
    const int64_t j = key - globals;
    return std::abs(i - j) <= p.local_radius && at(p.long_segment, i) >= 0 &&
           at(p.long_segment, i) == at(p.long_segment, j);
  }
  const int64_t g = std::min(query, key);
  const int64_t i = std::max(query, key) - globals;
  if (at(p.long_example, i) < 0 ||
      at(p.long_example, i) != at(p.global_example, g)) {
    return false;
  }
  return query < globals
             ? !p.hard_g2l || owns(g, i) || at(p.ignore_hard_g2l, g) != 0
             : !p.hard_l2g || owns(g, i) || at(p.ignore_hard_l2g, i) != 0;
}

DocumentMatrix MatrixOfRuns(const std::vector<std::vector<KeyRun>>& rows) {
  DocumentMatrix matrix(rows.size(), std::vector<bool>(rows.size(), false));
  for (size_t query = 0; query < rows.size(); ++query) {
    int32_t end = 0;
    for (const KeyRun& run : rows[query]) {
      EXPECT_GE(run.begin, end) << "query " << query;
      EXPECT_LT(run.begin, run.end) << "query " << query;
      end = run.end;
      for (int32_t key = run.begin; key < run.end; ++key) {
        matrix.at(query).at(static_cast<size_t>(key)) = true;
      }
    }
  }
  return matrix;
}

// The masks of the reference as one matrix.
DocumentMatrix MatrixOfMasks(const ExplicitInputs& masks,
                             const DocumentSize& size) {
  const auto tokens = static_cast<size_t>(size.tokens());
  DocumentMatrix matrix(tokens, std::vector<bool>(tokens, false));
  const auto fill = [&](const torch::Tensor& mask, int64_t first_query,
                        const auto& key_of) {
    for (int64_t i = 0; i < mask.size(1); ++i) {
      for (int64_t c = 0; c < mask.size(2); ++c) {
        if (mask[0][i][c].item<bool>()) {
          matrix.at(static_cast<size_t>(first_query + i))
              .at(static_cast<size_t>(key_of(i, c))) = true;
        }
      }
    }
  };
  const int64_t globals = size.globals;
  const auto same = [](int64_t, int64_t c) { return c; };
  fill(masks.g2g_mask, 0, same);
  fill(masks.g2l_mask, 0, [&](int64_t, int64_t c) { return globals + c; });
  fill(masks.l2g_mask, globals, same);
  fill(masks.l2l_mask, globals, [&](int64_t i, int64_t c) {
    return globals + i + c - size.local_radius;
  });
  return matrix;
}

TEST(DocumentAttentionTest, ShowsThePairsThatSeeEachOther) {
  for (const bool hard_l2g : {false, true}) {
    for (const bool hard_g2l : {false, true}) {
      SCOPED_TRACE(absl::StrCat(hard_l2g, " ", hard_g2l));
      const AttentionPattern pattern = PatternOfDocument(hard_l2g, hard_g2l);
      const DocumentSize size = {.globals = pattern.global_length(),
                                 .longs = pattern.long_length(),
                                 .local_radius = pattern.local_radius};
      DocumentMatrix expected;
      int64_t pairs = 0;
      for (int64_t query = 0; query < size.tokens(); ++query) {
        std::vector<bool>& row = expected.emplace_back();
        for (int64_t key = 0; key < size.tokens(); ++key) {
          row.push_back(Sees(pattern, query, key));
          pairs += row.back() ? 1 : 0;
        }
      }
      ASSERT_GT(pairs, 40);
      const AttentionInputs inputs({pattern});
      EXPECT_EQ(MatrixOfRuns(VisibleKeys(inputs, size)), expected);
      EXPECT_EQ(MatrixOfMasks(inputs.Tensors(1, size.longs, size.globals,
                                             size.local_radius, torch::kCPU),
                              size),
                expected);
    }
  }
}

TEST(DocumentAttentionTest, ShowsADocumentOfGlobalTokensAlone) {
  const AttentionPattern pattern = UnrestrictedPattern(0, 3, 84, 0);
  const auto rows = VisibleKeys(AttentionInputs({pattern}),
                                {.globals = 3, .longs = 0, .local_radius = 84});
  ASSERT_EQ(rows.size(), 3u);
  for (const std::vector<KeyRun>& row : rows) {
    ASSERT_EQ(row.size(), 1u);
    EXPECT_EQ(row[0].begin, 0);
    EXPECT_EQ(row[0].end, 3);
  }
}

// Random probabilities of rows that see each key with probability 0.7; row 1 of
// the long tokens sees nothing.
FourBlocks RandomProbabilities(const DocumentSize& size, int64_t heads) {
  const int64_t window = 2 * size.local_radius + 1;
  const auto softmax = [&](int64_t queries, int64_t first, int64_t second) {
    torch::Tensor weights =
        torch::rand({1, heads, queries, first + second}).pow(4) *
        torch::rand({1, heads, queries, first + second}).lt(0.7);
    if (second == window) {
      weights.select(2, 1).zero_();
      for (int64_t i = 0; i < queries; ++i) {
        for (int64_t w = 0; w < window; ++w) {
          const int64_t key = i + w - size.local_radius;
          if (key < 0 || key >= size.longs) {
            weights.select(2, i).select(2, first + w).zero_();
          }
        }
      }
    }
    return weights / weights.sum(-1, /*keepdim=*/true).clamp_min(1e-9);
  };
  const torch::Tensor globals = softmax(size.globals, size.globals, size.longs);
  const torch::Tensor longs = softmax(size.longs, size.globals, window);
  return {.g2g = globals.narrow(-1, 0, size.globals),
          .g2l = globals.narrow(-1, size.globals, size.longs),
          .l2g = longs.narrow(-1, 0, size.globals),
          .l2l = longs.narrow(-1, size.globals, window)};
}

// The probability of each key for a query: [G + L].
std::vector<double> DenseRow(const FourBlocks& p, int64_t head,
                             const DocumentSize& size, int64_t query) {
  std::vector<double> row(static_cast<size_t>(size.tokens()), 0);
  const auto at = [&](const torch::Tensor& block, int64_t i, int64_t c) {
    return block[0][head][i][c].item<double>();
  };
  for (int64_t key = 0; key < size.tokens(); ++key) {
    const int64_t i = query - size.globals;
    const int64_t j = key - size.globals;
    double& entry = row[static_cast<size_t>(key)];
    if (query < size.globals) {
      entry = j < 0 ? at(p.g2g, query, key) : at(p.g2l, query, j);
    } else if (j < 0) {
      entry = at(p.l2g, i, key);
    } else if (std::abs(i - j) <= size.local_radius) {
      entry = at(p.l2l, i, j - i + size.local_radius);
    }
  }
  return row;
}

TEST(DocumentAttentionTest, KeepsTheLargestAndTheSumOfTheRest) {
  torch::manual_seed(3);
  const DocumentSize size = {.globals = 5, .longs = 25, .local_radius = 4};
  constexpr int64_t kHead = 1;
  constexpr int64_t kKept = 6;
  const FourBlocks p = RandomProbabilities(size, /*heads=*/2);
  const LargestProbabilities largest = FindLargest(p, kHead, size, kKept);
  const double unit = 1.0 / kProbabilityUnits;
  for (int64_t query = 0; query < size.tokens(); ++query) {
    SCOPED_TRACE(absl::StrCat("query ", query));
    const std::vector<double> row = DenseRow(p, kHead, size, query);
    std::vector<double> sorted = row;
    std::sort(sorted.rbegin(), sorted.rend());
    const auto q = static_cast<size_t>(query);
    double sum = largest.rest[q] * unit;
    double to_globals = 0;
    for (size_t key = 0; key < static_cast<size_t>(size.globals); ++key) {
      to_globals += row[key];
    }
    for (size_t k = 0; k < kKept; ++k) {
      const double kept = largest.probabilities[q * kKept + k] * unit;
      EXPECT_NEAR(kept, sorted[k], 0.51 * unit);
      if (kept > 0) {
        EXPECT_NEAR(row.at(largest.keys[q * kKept + k]), kept, 0.51 * unit);
      }
      sum += kept;
    }
    const bool sees_nothing = query == size.globals + 1;
    EXPECT_EQ(sorted[0] == 0, sees_nothing);
    EXPECT_NEAR(sum, sees_nothing ? 0 : 1, 4 * unit);
    EXPECT_NEAR(largest.to_globals[q] * unit, to_globals, 0.51 * unit);
  }
}

TEST(DocumentAttentionTest, PacksNumbersBehindEachOther) {
  const DocumentSize two = {.globals = 1, .longs = 1, .local_radius = 1};
  const LargestProbabilities largest = {.keys = {1, 0x102},
                                        .probabilities = {0xffff, 3},
                                        .rest = {0, 0x0405},
                                        .to_globals = {6, 7}};
  const std::string packed = Pack(largest, two);
  EXPECT_THAT(std::vector<int>(packed.begin(), packed.end()),
              ElementsAre(1, 0, 2, 1, -1, -1, 3, 0, 0, 0, 5, 4, 6, 0, 7, 0));
  EXPECT_EQ(PackedBytes(two, 1), 16);
  const DocumentSize many = {.globals = 1, .longs = 65536, .local_radius = 1};
  EXPECT_EQ(KeyBytes(many), 4);
  EXPECT_EQ(Pack(largest, many).substr(0, 8),
            std::string("\1\0\0\0\2\1\0\0", 8));
}

}  // namespace
}  // namespace etc
