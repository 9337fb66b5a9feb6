#include <c10/util/Exception.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/linear.h>

#include "base/apply_linear.h"
#include "base/check_shape.h"
#include "base/to_device.h"
#include "tasks/hotpotqa/task.h"
#include "tasks/task/benchmark_head.h"

namespace etc {
namespace {

constexpr double kNoAnswerLogit = -10000.0;

using HotpotqaBatch = BenchmarkBatch<HotpotqaExample>;

// Marks the long tokens that are text that can be the answer, or [CLS]: [B, L]
// bool.
torch::Tensor TextMask(const HotpotqaBatch& batch,
                       const torch::Device& device) {
  const torch::Tensor types = batch.input.segment_ids.to(device);
  return types.eq(kHotpotqaSentenceType)
      .logical_or(types.eq(kHotpotqaTitleType));
}

// The sum of binary cross entropies over global tokens: [B].
torch::Tensor SupportingFactsLoss(const torch::Tensor& logits,
                                  const HotpotqaBatch& batch,
                                  bool whole_length) {
  torch::Tensor labels = torch::zeros(logits.sizes());   // [B, G]
  torch::Tensor weights = torch::zeros(logits.sizes());  // [B, G]
  auto label = labels.accessor<float, 2>();
  auto weight = weights.accessor<float, 2>();
  for (int64_t b = 0; b < logits.size(0); ++b) {
    const HotpotqaExample& example = batch.example(b);
    for (int64_t g = 0; g < example.global_length(); ++g) {
      const auto at = static_cast<size_t>(g);
      label[b][g] = example.supporting_facts[at];
      weight[b][g] = example.global_paragraph_ids[at] >= 0 ? 1.0F : 0.0F;
    }
  }
  if (whole_length) {
    weights.fill_(1);
  }
  return torch::binary_cross_entropy_with_logits(
             logits, ToDevice(labels, logits.device()),
             ToDevice(weights, logits.device()), /*pos_weight=*/{},
             at::Reduction::None)
      .sum(-1);
}

// Cross entropy of positions over the length: [B], 0 for those beyond it.
torch::Tensor PositionLoss(const torch::Tensor& logits,
                           const std::vector<int64_t>& positions) {
  const torch::Tensor targets = torch::tensor(positions, torch::kInt64);  // [B]
  const torch::Tensor is_beyond = targets.ge(logits.size(-1));
  return CrossEntropies(logits, targets.masked_fill(is_beyond, 0))
      .masked_fill(ToDevice(is_beyond, logits.device()), 0);
}

// The sum of cross entropies over long tokens: [B]. `logits` is [B, L, 3].
torch::Tensor BioLoss(const torch::Tensor& logits, const HotpotqaBatch& batch,
                      bool whole_length) {
  torch::Tensor targets =  // [B, L]
      torch::full({logits.size(0), logits.size(1)},
                  static_cast<int64_t>(HotpotqaBio::kOutside), torch::kInt64);
  auto target = targets.accessor<int64_t, 2>();
  for (int64_t b = 0; b < logits.size(0); ++b) {
    const std::vector<int64_t> classes = batch.example(b).BioTargets();
    for (size_t i = 0; i < classes.size(); ++i) {
      target[b][static_cast<int64_t>(i)] = classes[i];
    }
  }
  const torch::Tensor losses =  // [B, L]
      CrossEntropies(logits.flatten(0, 1), targets.flatten())
          .view(targets.sizes());
  if (whole_length) {
    return losses.sum(-1);
  }
  return losses.masked_fill(TextMask(batch, logits.device()).logical_not(), 0)
      .sum(-1);
}

// See MakeHotpotqaHead.
class HotpotqaHead : public BenchmarkHead<HotpotqaExample, HotpotqaLogits> {
 public:
  HotpotqaHead(const EtcConfig& config, const HotpotqaOptions& options)
      : options_(options) {
    supporting_facts_ = RegisterHeadLinear("supporting_facts", config, 1, this);
    answer_type_ = RegisterHeadLinear("answer_type", config, 3, this);
    if (options.answer_encoding == HotpotqaAnswerEncoding::kSpan) {
      answer_span_ = RegisterHeadLinear("answer_span", config, 2, this);
    } else {
      answer_bio_ = RegisterHeadLinear("answer_bio", config, 3, this);
    }
  }

  Tensors LogitsOf(const EtcOutput& encoded, const TaskBatch& batch) override {
    const torch::Tensor& text = encoded.long_output;      // [B, L, H]
    const torch::Tensor& global = encoded.global_output;  // [B, G, H]
    ETC_CHECK_SHAPE(batch.input.segment_ids, {text.size(0), text.size(1)});
    Tensors logits;
    logits.supporting_facts =
        ApplyLinear(global, supporting_facts_).squeeze(-1);  // [B, G]
    logits.answer_type =
        ApplyLinear(global.select(1, 0), answer_type_);  // [B, 3]
    torch::Tensor answer =                               // [B, L, 2 or 3]
        ApplyLinear(text, answer_bio_.is_empty() ? answer_span_ : answer_bio_);
    if (answer_bio_.is_empty() && !options_.official_compatibility) {
      answer = answer.masked_fill(
          TextMask(batch, answer.device()).logical_not().unsqueeze(-1),
          kNoAnswerLogit);
    }
    logits.answer = answer.transpose(1, 2);
    return logits;
  }

  torch::Tensor LossesOf(const Tensors& logits,
                         const TaskBatch& batch) override {
    const bool whole_length = options_.official_compatibility;
    const torch::Tensor questions =  // [B]
        SupportingFactsLoss(logits.supporting_facts, batch, whole_length) +
        CrossEntropies(logits.answer_type,
                       batch.Each(&HotpotqaExample::answer_type));
    if (!answer_bio_.is_empty()) {
      return (questions +
              BioLoss(logits.answer.transpose(1, 2), batch, whole_length)) /
             3;
    }
    const auto begin = [](const HotpotqaExample& example) {
      return example.target_span().first;
    };
    const auto end = [](const HotpotqaExample& example) {
      return example.target_span().last;
    };
    return (questions +
            PositionLoss(logits.answer.select(1, 0), batch.Each(begin)) +
            PositionLoss(logits.answer.select(1, 1), batch.Each(end))) /
           4;
  }

 private:
  const HotpotqaOptions options_;
  torch::nn::Linear supporting_facts_ = nullptr;
  torch::nn::Linear answer_type_ = nullptr;
  // One of the two is null.
  torch::nn::Linear answer_span_ = nullptr;
  torch::nn::Linear answer_bio_ = nullptr;
};

}  // namespace

Hotpotqa::HeadPtr MakeHotpotqaHead(const EtcConfig& model,
                                   const HotpotqaOptions& options) {
  return std::make_shared<HotpotqaHead>(model, options);
}

}  // namespace etc
