#include "etc/bert_input.h"

#include <c10/util/Exception.h>

#include <cstdint>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "attention/pattern_builders.h"
#include "base/check_shape.h"
#include "base/check_tensor.h"

namespace etc {
namespace {

// Leaves out the patterns.
EtcInput AllGlobal(const torch::Tensor& token_ids,
                   const torch::Tensor& token_type_ids) {
  TORCH_CHECK(token_ids.dim() == 2,
              "token_ids should be [batch, length], but are ",
              token_ids.sizes());
  CheckIntegers(token_ids, "token_ids");
  const int64_t batch = token_ids.size(0);
  const int64_t length = token_ids.size(1);
  EtcInput input{.token_ids = token_ids.new_empty({batch, 0}),
                 .global_token_ids = token_ids};
  if (token_type_ids.defined()) {
    ETC_CHECK_SHAPE(token_type_ids, {batch, length});
    CheckIntegers(token_type_ids, "token_type_ids");
    input.global_segment_ids = token_type_ids;
  }
  return input;
}

// [B, T] as int64 that can be read here, row after row.
torch::Tensor OnThisCpu(const torch::Tensor& ids) {
  return ids.to(torch::kCPU, torch::kInt64).contiguous();
}

// A pattern for each row of `example_ids` [B, T], in which padding is 0. It
// ends with the last token: padding behind it costs nothing.
std::vector<AttentionPattern> PatternsOfRows(const torch::Tensor& example_ids) {
  // No relative ids; without long tokens the radius says nothing.
  const PatternOptions options = {.relative_pos_max_distance = 0};
  const int64_t length = example_ids.size(1);
  const auto* row = example_ids.data_ptr<int64_t>();
  std::vector<AttentionPattern> patterns;
  for (int64_t b = 0; b < example_ids.size(0); ++b, row += length) {
    int64_t tokens = length;
    while (tokens > 0 && row[tokens - 1] == 0) {
      --tokens;
    }
    patterns.push_back(PatternFromExampleIds(
        {}, std::vector<int32_t>(row, row + tokens), {}, options));
  }
  return patterns;
}

// Returns for each token the number of tokens of its example before it, and 0
// for padding, which may be longer than the table of positions.
torch::Tensor PositionsWithinExamples(const torch::Tensor& example_ids) {
  torch::Tensor positions = torch::empty_like(example_ids);
  const int64_t length = example_ids.size(1);
  const auto* id = example_ids.data_ptr<int64_t>();
  auto* position = positions.data_ptr<int64_t>();
  for (int64_t b = 0; b < example_ids.size(0); ++b) {
    std::unordered_map<int64_t, int64_t> lengths;
    for (int64_t i = 0; i < length; ++i) {
      *position++ = *id == 0 ? 0 : lengths[*id]++;
      ++id;
    }
  }
  return positions;
}

}  // namespace

EtcInput BertInput(const torch::Tensor& token_ids,
                   const torch::Tensor& token_type_ids,
                   const torch::Tensor& attention_mask) {
  EtcInput input = AllGlobal(token_ids, token_type_ids);
  // BERT has no relative ids.
  input.attention = AttentionInputs::Everything(/*max_distance=*/0);
  if (attention_mask.defined()) {
    const int64_t batch = token_ids.size(0);
    const int64_t length = token_ids.size(1);
    ETC_CHECK_SHAPE(attention_mask, {batch, length});
    input.attention = AttentionInputs(PatternsOfRows(
        OnThisCpu(AsBoolMask(attention_mask, "attention_mask"))));
  }
  return input;
}

EtcInput PackedBertInput(const torch::Tensor& token_ids,
                         const torch::Tensor& token_type_ids,
                         const torch::Tensor& example_ids) {
  EtcInput input = AllGlobal(token_ids, token_type_ids);
  const int64_t batch = token_ids.size(0);
  const int64_t length = token_ids.size(1);
  ETC_CHECK_SHAPE(example_ids, {batch, length});
  CheckIntegers(example_ids, "example_ids");
  const torch::Tensor ids = OnThisCpu(example_ids);
  if (ids.numel() > 0) {
    const int64_t lowest = ids.min().item<int64_t>();
    const int64_t highest = ids.max().item<int64_t>();
    TORCH_CHECK(lowest >= 0 && highest <= std::numeric_limits<int32_t>::max(),
                "example ids should be from 0 to 2^31 - 1, but range from ",
                lowest, " to ", highest);
  }
  input.attention = AttentionInputs(PatternsOfRows(ids));
  input.global_position_ids =
      PositionsWithinExamples(ids).to(token_ids.device());
  return input;
}

}  // namespace etc
