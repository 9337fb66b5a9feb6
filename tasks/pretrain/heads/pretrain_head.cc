#include "tasks/pretrain/heads/pretrain_head.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "base/initializers.h"
#include "base/to_device.h"
#include "tasks/pretrain/heads/cpc_loss.h"
#include "tasks/task/benchmark_head.h"

namespace etc {
namespace {

// Added by the official code to the number of masked tokens.
constexpr double kMaskedEpsilon = 1e-5;

const PretrainExample& PretrainExampleOf(const Batch& batch, size_t b) {
  return ExampleAs<PretrainExample>(*batch.examples[b]);
}

torch::Tensor IndexTensor(const std::vector<int64_t>& values,
                          const torch::Device& device) {
  return ToDevice(torch::tensor(values, torch::kInt64), device);
}

// Rows of [B, T, H] that terms of a loss use, the example that each belongs to,
// and the label, if it is not another row.
struct TermRows {
  std::vector<int64_t> rows;      // b * T + t
  std::vector<int64_t> examples;  // b
  std::vector<int64_t> labels;

  void Add(size_t b, int64_t t, int64_t length) {
    rows.push_back(static_cast<int64_t>(b) * length + t);
    examples.push_back(static_cast<int64_t>(b));
  }
  bool empty() const { return rows.empty(); }
  int64_t size() const { return static_cast<int64_t>(rows.size()); }

  // Terms [M] added up by example: [B].
  torch::Tensor Sum(const torch::Tensor& terms, int64_t batch) const {
    return torch::zeros({batch}, terms.options().requires_grad(false))
        .index_add(0, IndexTensor(examples, terms.device()), terms);
  }
};

// Returns true if examples are pairs of sentences, whose tokens are all global.
bool IsOfPairs(const Batch& batch) {
  return batch.input.token_ids.size(1) == 0;
}

// Rows that the objectives read: the masked tokens of examples, then the first
// ones, and beside them the globals of hidden sentences.
struct LossTerms {
  TermRows masked;
  TermRows next;
  TermRows hidden;

  LossTerms(const Batch& batch, const std::string& objective) {
    const int64_t globals = batch.input.global_token_ids.size(1);
    const int64_t length =
        IsOfPairs(batch) ? globals : batch.input.token_ids.size(1);
    for (size_t b = 0; b < batch.examples.size(); ++b) {
      const PretrainExample& example = PretrainExampleOf(batch, b);
      for (size_t i = 0; i < example.masked_positions.size(); ++i) {
        masked.Add(b, example.masked_positions[i], length);
        masked.labels.push_back(example.masked_labels[i]);
      }
      if (objective == "mlm_nsp" && example.next_sentence >= 0) {
        next.Add(b, 0, length);
        next.labels.push_back(example.next_sentence);
      }
      if (objective == "mlm_cpc") {
        for (const int32_t g : example.hidden_globals) {
          hidden.Add(b, g, globals);
        }
      }
    }
  }

  OutputRows Rows(const Batch& batch) const {
    const torch::Device device = batch.input.global_token_ids.device();
    std::vector<int64_t> tokens = masked.rows;
    tokens.insert(tokens.end(), next.rows.begin(), next.rows.end());
    if (IsOfPairs(batch)) {
      return {.globals = IndexTensor(tokens, device)};
    }
    return {.longs = IndexTensor(tokens, device),
            .globals = IndexTensor(hidden.rows, device)};
  }
};

}  // namespace

PretrainCounts PretrainCounts::Of(const PretrainExample& example) {
  return {.masked = static_cast<double>(example.masked_positions.size()),
          .next = example.next_sentence >= 0 ? 1.0 : 0.0,
          .hidden = static_cast<double>(example.hidden_globals.size())};
}

void PretrainCounts::Add(const PretrainCounts& other) {
  masked += other.masked;
  next += other.next;
  hidden += other.hidden;
}

PretrainHead::PretrainHead(const EtcConfig& model,
                           const PretrainOptions& options)
    : options_(options),
      model_(model),
      mlm_(register_module("mlm", MlmHead(model))) {
  if (options_.next_sentence()) {
    next_ = MakeNspLayers(model.hidden_size, model.initializer_range);
    register_module("pooler", next_.pooler);
    register_module("nsp", next_.classifier);
  }
  if (options_.objective == "mlm_cpc" && options_.cpc_score == "bilinear") {
    cpc_kernel_ = torch::empty({model.hidden_size, model.hidden_size});
    TruncatedNormal_(cpc_kernel_, model.initializer_range);
    auto cpc = std::make_shared<torch::nn::Module>("cpc");
    cpc_kernel_ = cpc->register_parameter("kernel", cpc_kernel_);
    register_module("cpc", cpc);
  }
}

std::unique_ptr<UpdateContext> PretrainHead::BeginUpdate(EtcModel encoder) {
  if (options_.objective != "mlm_cpc") {
    return nullptr;
  }
  return std::make_unique<UpdateTargets>(std::move(encoder), &update_);
}

std::vector<torch::Tensor> PretrainHead::Run(EtcModel encoder,
                                             const Batch& batch) {
  mlm_->set_linear_precision(encoder->linear_precision());
  UpdateTargets::Slice targets;
  if (update_ != nullptr) {
    targets = update_->Next();
  } else if (options_.objective == "mlm_cpc") {
    targets.targets = RunTargets(encoder, batch.examples,
                                 batch.input.global_token_ids.device());
    targets.end = targets.targets.defined() ? targets.targets.size(0) : 0;
  }
  const LossTerms terms(batch, options_.objective);
  EtcInput input = batch.input;
  input.outputs = terms.Rows(batch);
  const EtcOutput encoded = encoder->forward(input);
  const torch::Tensor& tokens =  // [masked + next, H]
      IsOfPairs(batch) ? encoded.global_output : encoded.long_output;
  std::vector<torch::Tensor> sums(
      kPretrainSums, torch::zeros({batch.size()}, tokens.options()));
  const auto add = [&](const TermRows& rows, const auto& losses,
                       PretrainSum loss, PretrainSum correct) {
    sums[loss] = rows.Sum(losses.losses, batch.size());
    sums[correct] =
        rows.Sum(losses.correct.to(losses.losses.dtype()), batch.size());
  };
  if (!terms.masked.empty()) {
    add(terms.masked,
        mlm_->forward(tokens.narrow(0, 0, terms.masked.size()),
                      IndexTensor(terms.masked.labels, tokens.device()),
                      encoder->token_embedding_table()),
        kMaskedLosses, kMaskedCorrect);
  }
  if (!terms.next.empty()) {
    add(terms.next,
        ComputeNspLosses(
            tokens.narrow(0, terms.masked.size(), terms.next.size()),
            IndexTensor(terms.next.labels, tokens.device()), next_),
        kNextLosses, kNextCorrect);
  }
  if (targets.end > targets.begin) {
    add(terms.hidden, HiddenLosses(targets, encoded.global_output),
        kHiddenLosses, kHiddenCorrect);
  }
  return sums;
}

CpcLosses PretrainHead::HiddenLosses(const UpdateTargets::Slice& targets,
                                     const torch::Tensor& contexts) {
  TORCH_CHECK(targets.end - targets.begin == contexts.size(0), "there are ",
              contexts.size(0), " hidden sentences, but ",
              targets.end - targets.begin, " targets");
  return ComputeCpcLosses({.contexts = contexts,
                           .targets = targets.targets,
                           .target_rows = torch::arange(
                               targets.begin, targets.end, contexts.device()),
                           .kernel = cpc_kernel_,
                           .temperature = options_.cpc_temperature});
}

LossTotals PretrainHead::Totals(const Examples& examples) const {
  PretrainCounts counts;
  for (const auto& example : examples) {
    counts.Add(PretrainCounts::Of(ExampleAs<PretrainExample>(*example)));
  }
  return {counts.masked, counts.next, counts.hidden};
}

torch::Tensor PretrainHead::Loss(const std::vector<torch::Tensor>& sums,
                                 const Batch& /*batch*/,
                                 const LossTotals& totals) {
  torch::Tensor loss = sums[kMaskedLosses].sum() *
                       (options_.mlm_weight / (totals[0] + kMaskedEpsilon));
  if (totals[1] > 0) {
    loss = loss + sums[kNextLosses].sum() * (options_.nsp_weight / totals[1]);
  }
  if (totals[2] > 0) {
    loss = loss + sums[kHiddenLosses].sum() * (options_.cpc_weight / totals[2]);
  }
  return loss;
}

HeadCost PretrainHead::CostOf(const StepShape& update) const {
  const bool pairs = update.long_length == 0;
  const auto share = [](double rate, int64_t count) {
    return static_cast<int64_t>(std::round(rate * static_cast<double>(count)));
  };
  int64_t masked = share(options_.mask_rate,
                         pairs ? update.global_length : update.long_length);
  if (pairs && options_.max_predictions > 0) {  // ETC's is of a window
    masked = std::min(masked, options_.max_predictions);
  }
  const auto width = static_cast<double>(model_.token_embedding_size());
  // Logits once more going back: but the first are kept (mlm_loss.h).
  const double of_token = 2 * width *
                          (3 * static_cast<double>(model_.hidden_size) +
                           4 * static_cast<double>(model_.vocab_size));
  HeadCost cost = {.flops =
                       static_cast<double>(update.batch * masked) * of_token};
  const int64_t tokens = masked + (options_.next_sentence() ? 1 : 0);
  cost.outputs = pairs ? OutputCounts{.globals = tokens}
                       : OutputCounts{.longs = tokens, .globals = 0};
  if (options_.objective == "mlm_cpc") {
    const int64_t hidden = share(options_.cpc_rate, update.global_length);
    cost.outputs.globals = hidden;
    cost.targets = {.batch = update.batch,
                    .long_length = share(options_.cpc_rate, update.long_length),
                    .global_length = hidden,
                    .outputs = {.longs = 0}};
  }
  return cost;
}

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
