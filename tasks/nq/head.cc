#include "tasks/nq/head.h"

#include <c10/util/Exception.h>
#include <torch/nn/functional/loss.h>

#include <cstddef>

#include "base/apply_linear.h"
#include "base/check_shape.h"
#include "base/initializers.h"
#include "tasks/nq/example.h"
#include "tasks/nq/example_cast.h"

namespace etc {
namespace {

constexpr double kInitializerRange = 0.02;
constexpr double kNoAnswerLogit = -1e9;

// Whether a long token can be an end of an answer, or is [CLS]: [B, L] bool.
torch::Tensor AnswerMask(const Batch& batch) {
  torch::Tensor mask = torch::zeros(batch.long_token_ids.sizes(), torch::kBool);
  auto is_allowed = mask.accessor<bool, 2>();
  for (int64_t b = 0; b < batch.size(); ++b) {
    const NqExample& example = AsNq(*batch.examples[static_cast<size_t>(b)]);
    for (int64_t i = 0; i < example.long_length(); ++i) {
      is_allowed[b][i] =
          i == 0 || example.long_tokens[static_cast<size_t>(i)] >= 0;
    }
  }
  return mask;
}

// Cross entropies over the last axis of `logits` [N, classes]: [N].
torch::Tensor CrossEntropies(const torch::Tensor& logits,
                             const std::vector<int64_t>& targets) {
  return torch::cross_entropy_loss(
      logits, torch::tensor(targets, torch::kInt64).to(logits.device()),
      /*weight=*/{}, at::Reduction::None);
}

}  // namespace

NqHead::NqHead(const EtcConfig& config, const NqHeadOptions& options)
    : options_(options) {
  answer_span_ = register_module(
      "answer_span",
      MakeLinear(config.hidden_size, kNqNumChannels, kInitializerRange));
  answer_type_ = register_module(
      "answer_type",
      MakeLinear(config.hidden_size, kNqNumAnswerTypes, kInitializerRange));
}

std::vector<torch::Tensor> NqHead::forward(const EtcOutput& encoded,
                                           const Batch& batch) {
  const torch::Tensor& text = encoded.long_output;  // [B, L, H]
  ETC_CHECK_SHAPE(batch.long_token_ids, {text.size(0), text.size(1)});
  torch::Tensor spans = ApplyLinear(text, answer_span_);  // [B, L, 4]
  if (options_.mask_long_output) {
    spans = spans.masked_fill(
        AnswerMask(batch).logical_not().unsqueeze(-1).to(spans.device()),
        kNoAnswerLogit);
  }
  return {spans, ApplyLinear(text.select(1, 0), answer_type_)};
}

torch::Tensor NqHead::Losses(const std::vector<torch::Tensor>& logits,
                             const Batch& batch) {
  TORCH_CHECK(logits.size() == 2, "expected 2 tensors of logits, found ",
              logits.size());
  const int64_t length = batch.long_token_ids.size(1);
  ETC_CHECK_SHAPE(logits[0], {batch.size(), length, kNqNumChannels});
  ETC_CHECK_SHAPE(logits[1], {batch.size(), kNqNumAnswerTypes});
  std::vector<int64_t> ends;   // [B * 4]
  std::vector<int64_t> types;  // [B]
  for (const auto& example : batch.examples) {
    const NqExample& nq = AsNq(*example);
    TORCH_CHECK(nq.has_answer, "document ", nq.record_id,
                " has no annotation, so it has no loss");
    ends.insert(ends.end(), {nq.short_answer.start, nq.short_answer.end,
                             nq.long_answer.start, nq.long_answer.end});
    types.push_back(static_cast<int64_t>(nq.answer_type));
  }
  const torch::Tensor end_losses =  // [B, 4]
      CrossEntropies(logits[0].transpose(1, 2).flatten(0, 1), ends)
          .view({batch.size(), kNqNumChannels});
  return (end_losses.sum(-1) + CrossEntropies(logits[1], types)) /
         (kNqNumChannels + 1);
}

}  // namespace etc
