#include "tasks/pretrain/pretrain_metrics.h"

#include "tasks/typed_head.h"

namespace etc {

void PretrainMetrics::Add(const Batch& batch,
                          const std::vector<torch::Tensor>& sums) {
  for (size_t i = 0; i < kPretrainSums; ++i) {
    sums_[i] += sums[i].to(torch::kFloat64).sum().item<double>();
  }
  PretrainCounts counts;
  for (const auto& example : batch.examples) {
    counts.Add(PretrainCounts::Of(ExampleAs<PretrainExample>(*example)));
  }
  counts_.Add(counts);
  batches_with_hidden_ += counts.hidden > 0 ? 1 : 0;
}

Metrics PretrainMetrics::Score() const {
  Metrics metrics;
  double loss = 0;
  const auto add = [&](const std::string& name, size_t losses, double count,
                       double weight) {
    if (count > 0) {
      metrics.emplace_back(name + "_accuracy", sums_[losses + 1] / count);
      metrics.emplace_back(name + "_loss", sums_[losses] / count);
      loss += weight * sums_[losses] / count;
    }
  };
  add("masked_lm", kMaskedLosses, counts_.masked, options_.mlm_weight);
  add("next_sentence", kNextLosses, counts_.next, options_.nsp_weight);
  add("cpc", kHiddenLosses, counts_.hidden, options_.cpc_weight);
  if (counts_.hidden > 0) {
    metrics.emplace_back("cpc_chance", batches_with_hidden_ / counts_.hidden);
  }
  if (!metrics.empty()) {
    metrics.emplace_back("loss", loss);
  }
  return metrics;
}

}  // namespace etc
