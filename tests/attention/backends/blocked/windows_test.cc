// Skewing and blocks against the official tensor helpers and the official
// expansion of local ids to blocks (doc/model.md 12.3, 12.4). All are exact.
//
// Left out, since nothing here has a counterpart: shift_elements_right.

#include "attention/backends/blocked/windows.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "attention/attention_inputs.h"
#include "tests/support/tensor_matchers.h"

namespace etc {
namespace {

torch::Tensor Numbers(int64_t first, int64_t rows, int64_t columns) {
  return torch::arange(first, first + rows * columns).reshape({rows, columns});
}

// A [L, 1] stream in the layout of the blocks: [1, 1, L, 1].
torch::Tensor Stream(int64_t length) {
  return torch::arange(1, length + 1).reshape({1, 1, length, 1});
}

TEST(SkewTest, MatchesOfficialHelpers) {
  EXPECT_TRUE(SkewElementsRight(Numbers(1, 3, 3))
                  .equal(FromDigits({"12300", "04560", "00789"})));
  torch::Tensor ten =
      FromDigits({"120000", "034000", "005600", "000780", "000090"});
  ten[4][5] = 10;
  EXPECT_TRUE(SkewElementsRight(Numbers(1, 5, 2)).equal(ten));
  EXPECT_TRUE(SkewElementsRight(Numbers(1, 2, 4))
                  .equal(FromDigits({"12340", "05678"})));
  EXPECT_TRUE(SkewElementsRight(Numbers(1, 1, 4)).equal(Numbers(1, 1, 4)));
  EXPECT_THROW(SkewElementsRight(torch::arange(3)), c10::Error);
}

TEST(SkewTest, UnskewInvertsSkew) {
  for (const auto& [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{
           {3, 3}, {5, 2}, {2, 4}, {1, 4}, {7, 1}}) {
    const torch::Tensor windows = Numbers(1, rows, columns);
    EXPECT_TRUE(UnskewElementsRight(SkewElementsRight(windows)).equal(windows))
        << rows << " x " << columns;
  }
  EXPECT_TRUE(UnskewElementsRight(FromDigits({"100", "020", "003"}))
                  .equal(FromDigits({"1", "2", "3"})));
  EXPECT_THROW(UnskewElementsRight(Numbers(1, 3, 2)), c10::Error);
}

TEST(BlocksTest, MatchOfficialHelpers) {
  const auto split = [](int64_t block) {
    return SplitIntoBlocks(Stream(6), block).squeeze(-1)[0][0];
  };
  EXPECT_TRUE(split(2).equal(FromDigits({"12", "34", "56"})));
  EXPECT_TRUE(split(4).equal(FromDigits({"1234", "5600"})));
  EXPECT_TRUE(split(5).equal(FromDigits({"12345", "60000"})));
  EXPECT_TRUE(split(8).equal(FromDigits({"12345600"})));
  EXPECT_THROW(split(0), c10::Error);
  // concat_3_blocks: a margin of one block.
  const auto with_margin = [](const KeyWindow& window) {
    return BlocksWithMargin(Stream(6), 2, window).squeeze(-1)[0][0];
  };
  EXPECT_TRUE(with_margin({.before = 2, .after = 2})
                  .equal(FromDigits({"001234", "123456", "345600"})));
  EXPECT_TRUE(with_margin({.before = 3, .after = 0})
                  .equal(FromDigits({"00012", "01234", "23456"})));
  EXPECT_TRUE(with_margin({.before = 0, .after = 1})
                  .equal(FromDigits({"123", "345", "560"})));
}

TEST(BlocksTest, JoinInvertsSplit) {
  for (const int64_t length : {1, 5, 6, 7}) {
    EXPECT_TRUE(JoinBlocks(SplitIntoBlocks(Stream(length), 3), length)
                    .equal(Stream(length)));
  }
}

// The official slots of r + 1 queries: three blocks of keys, of which the first
// and the last slot are in no window. [count, r + 1, 3 (r + 1)].
torch::Tensor ExpandToOfficialSlots(const torch::Tensor& local_ids) {
  const int64_t length = local_ids.size(0);
  const int64_t radius = (local_ids.size(1) - 1) / 2;
  const torch::Tensor inside =
      AttentionInputs().Tensors(1, length, 0, radius, torch::kCPU).l2l_mask[0];
  const torch::Tensor blocks = SkewElementsRight(SplitIntoBlocks(
      (local_ids * inside).reshape({1, 1, length, 2 * radius + 1}),
      radius + 1));
  return torch::constant_pad_nd(blocks, {1, 1})[0][0];
}

TEST(BlocksTest, MatchOfficialExpansionOfLocalIds) {
  const auto expand = [](int64_t length, int64_t radius) {
    return ExpandToOfficialSlots(Numbers(1, length, 2 * radius + 1));
  };
  const auto slots = [](const std::vector<std::vector<int64_t>>& rows) {
    std::vector<torch::Tensor> tensors;
    for (const std::vector<int64_t>& row : rows) {
      tensors.push_back(torch::tensor(row, torch::kInt64));
    }
    return torch::stack(tensors);
  };
  EXPECT_TRUE(
      expand(6, 1).reshape({6, 6}).equal(slots({{0, 0, 2, 3, 0, 0},
                                                {0, 0, 4, 5, 6, 0},
                                                {0, 7, 8, 9, 0, 0},
                                                {0, 0, 10, 11, 12, 0},
                                                {0, 13, 14, 15, 0, 0},
                                                {0, 0, 16, 17, 0, 0}})));
  EXPECT_TRUE(expand(5, 2).reshape({6, 9}).equal(
      slots({{0, 0, 0, 3, 4, 5, 0, 0, 0},
             {0, 0, 0, 7, 8, 9, 10, 0, 0},
             {0, 0, 0, 11, 12, 13, 14, 15, 0},
             {0, 16, 17, 18, 19, 0, 0, 0, 0},
             {0, 0, 21, 22, 23, 0, 0, 0, 0},
             {0, 0, 0, 0, 0, 0, 0, 0, 0}})));
  EXPECT_TRUE(
      expand(2, 2).reshape({3, 9}).equal(slots({{0, 0, 0, 3, 4, 0, 0, 0, 0},
                                                {0, 0, 0, 7, 8, 0, 0, 0, 0},
                                                {0, 0, 0, 0, 0, 0, 0, 0, 0}})));
  EXPECT_TRUE(ExpandToOfficialSlots(torch::ones({7, 5}, torch::kInt64))
                  .reshape({9, 9})
                  .equal(FromDigits({"000111000", "000111100", "000111110",
                                     "011111000", "001111100", "000111100",
                                     "011100000", "000000000", "000000000"})));
}

}  // namespace
}  // namespace etc
