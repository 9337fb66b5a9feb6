// Examples of different lengths side by side: ids, padding, patterns. That
// padding takes part in nothing is shown where attention is tested.

#include "tasks/data/batch.h"

#include <torch/types.h>

#include "gtest/gtest.h"

namespace etc {
namespace {

std::shared_ptr<Example> MakeExample(std::vector<int32_t> long_ids,
                                     std::vector<int32_t> global_ids) {
  auto example = std::make_shared<Example>();
  example->pattern = UnrestrictedPattern(
      static_cast<int64_t>(long_ids.size()),
      static_cast<int64_t>(global_ids.size()), /*local_radius=*/2,
      /*relative_pos_max_distance=*/1);
  example->long_type_ids.assign(long_ids.size(), 3);
  example->global_type_ids.assign(global_ids.size(), 4);
  example->long_token_ids = std::move(long_ids);
  example->global_token_ids = std::move(global_ids);
  return example;
}

torch::Tensor Rows(std::vector<std::vector<int64_t>> rows) {
  std::vector<torch::Tensor> tensors;
  for (const auto& row : rows) {
    tensors.push_back(torch::tensor(row, torch::kLong));
  }
  return torch::stack(tensors);
}

TEST(MakeBatchTest, PadsEachStreamToItsLongestExample) {
  const Batch batch =
      MakeBatch({MakeExample({5, 6, 7}, {1}), MakeExample({8}, {2, 9}),
                 MakeExample({}, {})});
  EXPECT_EQ(batch.size(), 3);
  EXPECT_TRUE(torch::equal(batch.input.token_ids,
                           Rows({{5, 6, 7}, {8, 0, 0}, {0, 0, 0}})));
  EXPECT_TRUE(torch::equal(batch.input.segment_ids,
                           Rows({{3, 3, 3}, {3, 0, 0}, {0, 0, 0}})));
  EXPECT_TRUE(torch::equal(batch.input.global_token_ids,
                           Rows({{1, 0}, {2, 9}, {0, 0}})));
  EXPECT_TRUE(torch::equal(batch.input.global_segment_ids,
                           Rows({{4, 0}, {4, 4}, {0, 0}})));
  ASSERT_NE(batch.input.attention.patterns(), nullptr);
  ASSERT_EQ(batch.input.attention.patterns()->size(), 3);
  EXPECT_EQ((*batch.input.attention.patterns())[0].long_length(), 3);
  EXPECT_EQ((*batch.input.attention.patterns())[1].global_length(), 2);
  EXPECT_FALSE(batch.input.position_ids.defined());
  EXPECT_FALSE(batch.input.global_embedding_adder.defined());
}

TEST(MakeBatchTest, RefusesNoExamplesAndMissingTypes) {
  EXPECT_THROW(MakeBatch({}), c10::Error);
  auto example = MakeExample({5, 6}, {1});
  example->long_type_ids.pop_back();
  EXPECT_THROW(MakeBatch({example}), c10::Error);
}

}  // namespace
}  // namespace etc
