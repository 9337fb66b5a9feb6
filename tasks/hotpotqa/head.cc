#include "tasks/hotpotqa/head.h"

#include <c10/util/Exception.h>
#include <torch/nn/functional/loss.h>

#include "base/apply_linear.h"
#include "base/check_shape.h"
#include "base/initializers.h"
#include "tasks/hotpotqa/example.h"

namespace etc {
namespace {

constexpr double kInitializerRange = 0.02;
constexpr double kNoAnswerLogit = -10000.0;

const HotpotqaExample& AnsweredExample(const Batch& batch, int64_t b) {
  const Example& example = *batch.examples[static_cast<size_t>(b)];
  const auto* hotpotqa = dynamic_cast<const HotpotqaExample*>(&example);
  TORCH_CHECK(hotpotqa != nullptr, "example ", example.record_id,
              " is not one of HotpotQA");
  TORCH_CHECK(hotpotqa->has_answer, "question ", example.record_id,
              " has no answer, so it has no loss");
  return *hotpotqa;
}

// Whether a long token is text that can be the answer, or [CLS]: [B, L] bool.
torch::Tensor TextMask(const Batch& batch, const torch::Device& device) {
  const torch::Tensor types = batch.long_type_ids.to(device);
  return types.eq(kHotpotqaSentenceType)
      .logical_or(types.eq(kHotpotqaTitleType));
}

// The sum of binary cross entropies over global tokens: [B].
torch::Tensor SupportingFactsLoss(const torch::Tensor& logits,
                                  const Batch& batch, bool whole_length) {
  torch::Tensor labels = torch::zeros(logits.sizes());   // [B, G]
  torch::Tensor weights = torch::zeros(logits.sizes());  // [B, G]
  auto label = labels.accessor<float, 2>();
  auto weight = weights.accessor<float, 2>();
  for (int64_t b = 0; b < logits.size(0); ++b) {
    const HotpotqaExample& example = AnsweredExample(batch, b);
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
             logits, labels.to(logits.device()), weights.to(logits.device()),
             /*pos_weight=*/{}, at::Reduction::None)
      .sum(-1);
}

torch::Tensor AnswerTypeLoss(const torch::Tensor& logits, const Batch& batch) {
  std::vector<int64_t> types;
  for (int64_t b = 0; b < logits.size(0); ++b) {
    types.push_back(
        static_cast<int64_t>(AnsweredExample(batch, b).answer_type));
  }
  return torch::cross_entropy_loss(
      logits, torch::tensor(types, torch::kInt64).to(logits.device()),
      /*weight=*/{}, at::Reduction::None);
}

// Cross entropy of positions over the length: [B], 0 for those beyond it.
torch::Tensor PositionLoss(const torch::Tensor& logits,
                           const std::vector<int64_t>& positions) {
  torch::Tensor targets = torch::tensor(positions, torch::kInt64);  // [B]
  const torch::Tensor is_beyond = targets.ge(logits.size(-1));
  targets = targets.masked_fill(is_beyond, 0).to(logits.device());
  return torch::cross_entropy_loss(logits, targets, /*weight=*/{},
                                   at::Reduction::None)
      .masked_fill(is_beyond.to(logits.device()), 0);
}

// The sum of cross entropies over long tokens: [B].
torch::Tensor BioLoss(const torch::Tensor& logits, const Batch& batch,
                      bool whole_length) {
  torch::Tensor targets =  // [B, L]
      torch::full({logits.size(0), logits.size(1)},
                  static_cast<int64_t>(HotpotqaBio::kOutside), torch::kInt64);
  auto target = targets.accessor<int64_t, 2>();
  for (int64_t b = 0; b < logits.size(0); ++b) {
    const std::vector<int64_t> classes = AnsweredExample(batch, b).BioTargets();
    for (size_t i = 0; i < classes.size(); ++i) {
      target[b][static_cast<int64_t>(i)] = classes[i];
    }
  }
  const torch::Tensor losses =  // [B, L]
      torch::cross_entropy_loss(logits.flatten(0, 1),
                                targets.flatten().to(logits.device()),
                                /*weight=*/{}, at::Reduction::None)
          .view(targets.sizes());
  if (whole_length) {
    return losses.sum(-1);
  }
  return losses.masked_fill(TextMask(batch, logits.device()).logical_not(), 0)
      .sum(-1);
}

}  // namespace

HotpotqaHead::HotpotqaHead(const EtcConfig& config,
                           const HotpotqaHeadOptions& options)
    : options_(options) {
  const int64_t hidden = config.hidden_size;
  supporting_facts_ = register_module("supporting_facts",
                                      MakeLinear(hidden, 1, kInitializerRange));
  answer_type_ =
      register_module("answer_type", MakeLinear(hidden, 3, kInitializerRange));
  if (options.answer_encoding == HotpotqaAnswerEncoding::kSpan) {
    answer_span_ = register_module("answer_span",
                                   MakeLinear(hidden, 2, kInitializerRange));
  } else {
    answer_bio_ =
        register_module("answer_bio", MakeLinear(hidden, 3, kInitializerRange));
  }
}

std::vector<torch::Tensor> HotpotqaHead::forward(const EtcOutput& encoded,
                                                 const Batch& batch) {
  const torch::Tensor& text = encoded.long_output;      // [B, L, H]
  const torch::Tensor& global = encoded.global_output;  // [B, G, H]
  ETC_CHECK_SHAPE(batch.long_type_ids, {text.size(0), text.size(1)});
  std::vector<torch::Tensor> logits = {
      ApplyLinear(global, supporting_facts_).squeeze(-1),  // [B, G]
      ApplyLinear(global.select(1, 0), answer_type_)};     // [B, 3]
  if (!answer_bio_.is_empty()) {
    logits.push_back(ApplyLinear(text, answer_bio_));  // [B, L, 3]
    return logits;
  }
  torch::Tensor ends = ApplyLinear(text, answer_span_);  // [B, L, 2]
  if (!options_.official_compatibility) {
    ends = ends.masked_fill(
        TextMask(batch, ends.device()).logical_not().unsqueeze(-1),
        kNoAnswerLogit);
  }
  logits.push_back(ends.select(-1, 0));  // [B, L]
  logits.push_back(ends.select(-1, 1));  // [B, L]
  return logits;
}

torch::Tensor HotpotqaHead::Losses(const std::vector<torch::Tensor>& logits,
                                   const Batch& batch) {
  const bool is_span = answer_bio_.is_empty();
  TORCH_CHECK(logits.size() == (is_span ? 4 : 3), "expected ", is_span ? 4 : 3,
              " tensors of logits, found ", logits.size());
  const torch::Tensor questions =
      SupportingFactsLoss(logits[0], batch, options_.official_compatibility) +
      AnswerTypeLoss(logits[1], batch);  // [B]
  if (!is_span) {
    return (questions +
            BioLoss(logits[2], batch, options_.official_compatibility)) /
           3;
  }
  std::vector<int64_t> begins;
  std::vector<int64_t> ends;
  for (int64_t b = 0; b < batch.size(); ++b) {
    const PieceSpan target = AnsweredExample(batch, b).target_span();
    begins.push_back(target.first);
    ends.push_back(target.last);
  }
  return (questions + PositionLoss(logits[2], begins) +
          PositionLoss(logits[3], ends)) /
         4;
}

}  // namespace etc
