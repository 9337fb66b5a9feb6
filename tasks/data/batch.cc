#include "tasks/data/batch.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

#include "base/to_device.h"

namespace etc {
namespace {

// One row for each example, its ids first and zeros behind: [B, length].
torch::Tensor PadRows(const std::vector<std::shared_ptr<const Example>>& rows,
                      std::vector<int32_t> Example::*ids, int64_t length) {
  torch::Tensor padded =
      torch::zeros({static_cast<int64_t>(rows.size()), length}, torch::kLong);
  for (size_t row = 0; row < rows.size(); ++row) {
    const std::vector<int32_t>& values = (*rows[row]).*ids;
    padded[static_cast<int64_t>(row)]
        .narrow(0, 0, static_cast<int64_t>(values.size()))
        .copy_(torch::tensor(values, torch::kInt));
  }
  return padded;
}

}  // namespace

Batch MakeBatch(std::vector<std::shared_ptr<const Example>> examples,
                const torch::Device& device) {
  TORCH_CHECK(!examples.empty(), "a batch should have at least one example");
  int64_t long_length = 0;
  int64_t global_length = 0;
  std::vector<AttentionPattern> patterns;
  for (const auto& example : examples) {
    TORCH_CHECK(
        example->long_type_ids.size() == example->long_token_ids.size() &&
            example->global_type_ids.size() == example->global_token_ids.size(),
        "example ", example->record_id,
        " should have one type id for each token id");
    long_length = std::max(long_length, example->long_length());
    global_length = std::max(global_length, example->global_length());
    patterns.push_back(example->pattern);
  }
  const auto rows = [&](std::vector<int32_t> Example::*ids, int64_t length) {
    return ToDevice(PadRows(examples, ids, length), device);
  };
  Batch batch;
  batch.input.token_ids = rows(&Example::long_token_ids, long_length);
  batch.input.segment_ids = rows(&Example::long_type_ids, long_length);
  batch.input.global_token_ids =
      rows(&Example::global_token_ids, global_length);
  batch.input.global_segment_ids =
      rows(&Example::global_type_ids, global_length);
  batch.input.attention = AttentionInputs(std::move(patterns));
  batch.examples = std::move(examples);
  return batch;
}

}  // namespace etc
