#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include "base/apply_linear.h"
#include "base/check_shape.h"
#include "base/to_device.h"
#include "tasks/nq/task.h"
#include "tasks/task/benchmark_head.h"

namespace etc {
namespace {

constexpr double kMaskedLogit = -1e9;

// Marks the long tokens that can be an end of an answer, and [CLS]: [B, L]
// bool.
torch::Tensor AnswerMask(const BenchmarkBatch<NqExample>& batch) {
  torch::Tensor mask =
      torch::zeros(batch.input.token_ids.sizes(), torch::kBool);
  auto is_allowed = mask.accessor<bool, 2>();
  for (int64_t b = 0; b < batch.size(); ++b) {
    const NqExample& example = batch.example(b);
    for (int64_t i = 0; i < example.long_length(); ++i) {
      is_allowed[b][i] =
          i == 0 || example.long_tokens[static_cast<size_t>(i)] >= 0;
    }
  }
  return mask;
}

// See MakeNqHead.
class NqHead : public BenchmarkHead<NqExample, NqLogits> {
 public:
  NqHead(const EtcConfig& config, const NqOptions& options)
      : mask_long_output_(options.mask_long_output) {
    answer_span_ =
        RegisterHeadLinear("answer_span", config, kNqNumChannels, this);
    answer_type_ =
        RegisterHeadLinear("answer_type", config, kNqNumAnswerTypes, this);
  }

  ReadTokens Reads() const override { return ReadTokens::kText; }

  Tensors LogitsOf(const EtcOutput& encoded, const TaskBatch& batch) override {
    const torch::Tensor& text = encoded.long_output;  // [B, L, H]
    ETC_CHECK_SHAPE(batch.input.token_ids, {text.size(0), text.size(1)});
    torch::Tensor ends = ApplyLinear(text, answer_span_);  // [B, L, 4]
    if (mask_long_output_) {
      ends = ends.masked_fill(
          ToDevice(AnswerMask(batch).logical_not().unsqueeze(-1),
                   ends.device()),
          kMaskedLogit);
    }
    return {.ends = ends.transpose(1, 2),
            .answer_type = ApplyLinear(text.select(1, 0), answer_type_)};
  }

  torch::Tensor LossesOf(const Tensors& logits,
                         const TaskBatch& batch) override {
    const int64_t length = batch.input.token_ids.size(1);
    ETC_CHECK_SHAPE(logits.ends, {batch.size(), kNqNumChannels, length});
    ETC_CHECK_SHAPE(logits.answer_type, {batch.size(), kNqNumAnswerTypes});
    std::vector<int64_t> ends;  // [B * 4]
    for (const auto& example : batch.examples) {
      ends.insert(ends.end(),
                  {example->short_answer.start, example->short_answer.end,
                   example->long_answer.start, example->long_answer.end});
    }
    const torch::Tensor end_losses =  // [B, 4]
        CrossEntropies(logits.ends.flatten(0, 1), ends)
            .view({batch.size(), kNqNumChannels});
    return (end_losses.sum(-1) +
            CrossEntropies(logits.answer_type,
                           batch.Each(&NqExample::answer_type))) /
           (kNqNumChannels + 1);
  }

 private:
  const bool mask_long_output_;
  torch::nn::Linear answer_span_ = nullptr;
  torch::nn::Linear answer_type_ = nullptr;
};

}  // namespace

Nq::HeadPtr MakeNqHead(const EtcConfig& model, const NqOptions& options) {
  return std::make_shared<NqHead>(model, options);
}

}  // namespace etc
