// Tiles hold every query once, in order, and are cut between packed documents
// and nowhere else: a cut that is missing costs time alone, and no other test
// would see it. Documents and rows lie on both sides of the shortest tile, 288
// queries of few heads, and of the longest one, 768.

#include "attention/backends/cpu/query_tiles.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cstdint>
#include <vector>

#include "attention/attention_inputs.h"
#include "attention/attention_problem.h"
#include "attention/softmax_pattern.h"
#include "attention/sparse_attention.h"
#include "tests/support/pattern_layers.h"

namespace etc {
namespace {

std::vector<QueryTile> TilesOf(const SoftmaxPattern& pattern, int64_t batch,
                               int64_t heads) {
  const AttentionStack stack =
      LayersOver(pattern, {.heads = heads, .head_dim = 1});
  return QueryTiles(MakeAttentionProblem(stack.layers[0]), batch);
}

// Expects all queries of each example once, in ascending order, in tiles that
// kernels can hold.
void ExpectEveryQueryOnce(const SoftmaxPattern& pattern) {
  for (int64_t batch = 0; batch < pattern.batch; ++batch) {
    for (const int64_t heads : {1, 64}) {
      int64_t next = 0;
      for (const QueryTile& tile : TilesOf(pattern, batch, heads)) {
        EXPECT_EQ(tile.begin, next);
        EXPECT_GT(tile.end, tile.begin);
        EXPECT_LE(tile.end - tile.begin, 768);
        next = tile.end;
      }
      EXPECT_EQ(next, pattern.queries);
    }
  }
}

// The queries at which a tile begins with other keys than those before.
std::vector<int64_t> Cuts(const std::vector<QueryTile>& tiles) {
  std::vector<int64_t> cuts;
  for (const QueryTile& tile : tiles) {
    if (tile.first_key > 0) {
      cuts.push_back(tile.begin);
    }
  }
  return cuts;
}

std::vector<PackedDocument> Squares(const std::vector<int64_t>& lengths) {
  std::vector<PackedDocument> documents;
  for (const int64_t length : lengths) {
    const auto id = static_cast<int64_t>(documents.size()) + 1;
    documents.push_back({.id = id, .queries = length, .keys = length});
  }
  return documents;
}

TEST(QueryTilesTest, CutsARowBetweenDocuments) {
  const SoftmaxPattern packed =
      PackedPattern(Squares({500, 400, 900, 512}), /*causal=*/true, 0);
  ExpectEveryQueryOnce(packed);
  const std::vector<QueryTile> tiles = TilesOf(packed, 0, 64);
  EXPECT_EQ(Cuts(tiles), (std::vector<int64_t>{500, 900, 1800}));
  for (const QueryTile& tile : tiles) {
    if (tile.first_key > 0) {
      EXPECT_EQ(tile.first_key, tile.begin);  // as many keys as queries
    }
  }
  // The second row begins with the last document.
  EXPECT_EQ(Cuts(TilesOf(packed, 1, 64)),
            (std::vector<int64_t>{512, 1012, 1412}));
}

TEST(QueryTilesTest, FirstKeysAreThoseOfTheDocuments) {
  const SoftmaxPattern packed = PackedPattern(
      {{1, 300, 500}, {2, 400, 280}, {3, 500, 700}}, /*causal=*/false, 0);
  const std::vector<QueryTile> tiles = TilesOf(packed, 0, 1);
  std::vector<int64_t> keys;
  for (const QueryTile& tile : tiles) {
    if (tile.first_key > 0) {
      keys.push_back(tile.first_key);
    }
  }
  EXPECT_EQ(Cuts(tiles), (std::vector<int64_t>{300, 700}));
  EXPECT_EQ(keys, (std::vector<int64_t>{500, 780}));
}

TEST(QueryTilesTest, JoinsShortDocuments) {
  const SoftmaxPattern packed = PackedPattern(
      Squares(std::vector<int64_t>(100, 10)), /*causal=*/false, 0);
  ExpectEveryQueryOnce(packed);
  const std::vector<int64_t> cuts = Cuts(TilesOf(packed, 0, 1));
  EXPECT_EQ(cuts, (std::vector<int64_t>{280, 560, 840}));
  const SoftmaxPattern tokens =
      PackedPattern(Squares(std::vector<int64_t>(300, 1)), /*causal=*/false, 0);
  ExpectEveryQueryOnce(tokens);
  EXPECT_EQ(TilesOf(tokens, 0, 1).size(), 2u);
}

TEST(QueryTilesTest, CutsNothingElse) {
  const KeyPatternOptions square = {.queries = 1000, .keys = 1000, .batch = 2};
  const torch::Tensor tokens =
      torch::arange(1000).ge(250).logical_and(torch::arange(1000).lt(900));
  const torch::Tensor padded = torch::stack({tokens, tokens.flip(0)});
  const torch::Tensor in_reverse =
      torch::arange(1000).div(250, "floor").add(1).expand({2, 1000}).flip(1);
  for (const SoftmaxPattern& pattern :
       {AllKeysPattern(square), CausalPattern(square),
        WindowPattern(square, {.before = 9}),
        OnlyKeys(AllKeysPattern(square), padded),
        OnlyKeys(CausalPattern(square), padded),
        OnlyDocuments(AllKeysPattern(square), padded.to(torch::kInt64),
                      padded.to(torch::kInt64)),
        OnlyDocuments(AllKeysPattern(square), in_reverse.flip(1).contiguous(),
                      in_reverse.contiguous()),
        AttentionInputs::Everything(0).Softmax(QuerySide::kGlobal, 2, 300, 1000,
                                               9)}) {
    ExpectEveryQueryOnce(pattern);
    const std::vector<QueryTile> tiles = TilesOf(pattern, 1, 64);
    EXPECT_TRUE(Cuts(tiles).empty());
    // 2 examples of 64 heads: the longest tiles of the same length.
    ASSERT_EQ(tiles.size(), 2u);
    EXPECT_EQ(tiles[0].end, 528);
  }
}

}  // namespace
}  // namespace etc
