#include "tasks/hotpotqa/predictions.h"

#include <c10/util/Exception.h>

#include <cstddef>

#include "absl/types/span.h"
#include "tasks/hotpotqa/example.h"

namespace etc {
namespace {

// Row `b` of a contiguous float32 tensor [B, ...].
absl::Span<const float> Row(const torch::Tensor& tensor, int64_t b) {
  const torch::Tensor row = tensor[b];
  return absl::MakeConstSpan(row.data_ptr<float>(),
                             static_cast<size_t>(row.numel()));
}

double JointF1(const HotpotqaScore& score) {
  for (const auto& [name, value] : score.Means()) {
    if (name == "joint_f1") {
      return value;
    }
  }
  return 0;
}

}  // namespace

HotpotqaPredictions::HotpotqaPredictions(
    HotpotqaDecodingOptions options, const std::vector<double>& thresholds,
    std::shared_ptr<const Tokenizer> tokenizer)
    : tokenizer_(std::move(tokenizer)) {
  variants_.push_back({.options = options});
  for (const double threshold : thresholds) {
    options.supporting_fact_threshold = threshold;
    variants_.push_back({.options = options});
  }
}

void HotpotqaPredictions::Add(const Batch& batch,
                              const std::vector<torch::Tensor>& logits) {
  TORCH_CHECK(logits.size() == 3 || logits.size() == 4,
              "expected 3 or 4 tensors of logits, found ", logits.size());
  std::vector<torch::Tensor> rows;
  for (const torch::Tensor& tensor : logits) {
    TORCH_CHECK(tensor.size(0) == batch.size(), "expected logits of ",
                batch.size(), " examples, found ", tensor.size(0));
    rows.push_back(tensor.to(torch::kFloat32).contiguous());
  }
  for (int64_t b = 0; b < batch.size(); ++b) {
    const Example& example = *batch.examples[static_cast<size_t>(b)];
    const auto* hotpotqa = dynamic_cast<const HotpotqaExample*>(&example);
    TORCH_CHECK(hotpotqa != nullptr, "example ", example.record_id,
                " is not one of HotpotQA");
    HotpotqaLogits of_example{.supporting_facts = Row(rows[0], b),
                              .answer_type = Row(rows[1], b)};
    if (rows.size() == 3) {
      of_example.bio = Row(rows[2], b);
    } else {
      of_example.begin = Row(rows[2], b);
      of_example.end = Row(rows[3], b);
    }
    for (Variant& variant : variants_) {
      HotpotqaPrediction prediction =
          DecodeHotpotqa(*hotpotqa, of_example, variant.options, *tokenizer_);
      if (hotpotqa->has_answer) {
        variant.score.Add(prediction.answer, prediction.facts,
                          *hotpotqa->record);
      }
      variant.predictions.emplace_back(example.record_id,
                                       std::move(prediction));
    }
  }
}

const HotpotqaPredictions::Variant& HotpotqaPredictions::Best() const {
  if (variants_.size() == 1 || variants_.front().score.questions() == 0) {
    return variants_.front();
  }
  size_t best = 1;
  for (size_t i = 2; i < variants_.size(); ++i) {
    if (JointF1(variants_[i].score) > JointF1(variants_[best].score)) {
      best = i;
    }
  }
  return variants_[best];
}

Metrics HotpotqaPredictions::Score() const {
  const Variant& best = Best();
  if (best.score.questions() == 0) {
    return {};
  }
  Metrics metrics = best.score.Means();
  if (variants_.size() > 1) {
    metrics.emplace_back("threshold", best.options.supporting_fact_threshold);
  }
  return metrics;
}

std::string HotpotqaPredictions::FileContents() const {
  return HotpotqaPredictionsToJson(Best().predictions);
}

}  // namespace etc
