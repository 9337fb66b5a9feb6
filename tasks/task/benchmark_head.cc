#include "tasks/task/benchmark_head.h"

#include <torch/nn/functional/loss.h>

#include <utility>

#include "base/initializers.h"
#include "base/to_device.h"

namespace etc {
namespace {

// Added by the official code to the number of examples.
constexpr double kOfficialEpsilon = 1e-5;

torch::Tensor NoRows(const Batch& batch) {
  return torch::empty({0}, batch.input.global_token_ids.options());
}

}  // namespace

OutputRows OnlyLongTokens(const Batch& batch) {
  return {.globals = NoRows(batch)};
}

OutputRows OnlyGlobalTokens(const Batch& batch) {
  return {.longs = NoRows(batch)};
}

EtcInput OutputHead::EncoderInput(const Batch& batch) {
  EtcInput input = batch.input;
  const EmbeddingAdders adders = Adders(batch);
  input.long_embedding_adder = adders.long_adder;
  input.global_embedding_adder = adders.global_adder;
  return input;
}

std::vector<torch::Tensor> OutputHead::Run(EtcModel encoder,
                                           const Batch& batch) {
  EtcInput input = EncoderInput(batch);
  input.outputs = Reads(batch);
  return forward(encoder->forward(input), batch);
}

LossTotals OutputHead::Totals(const Examples& examples) const {
  return {static_cast<double>(examples.size())};
}

torch::Tensor OutputHead::Loss(const std::vector<torch::Tensor>& logits,
                               const Batch& batch, const LossTotals& totals) {
  const torch::Tensor losses = Losses(logits, batch);  // [B]
  TORCH_CHECK(losses.dim() == 1 && losses.size(0) == batch.size(),
              "a head's losses should have shape [", batch.size(),
              "], but have ", losses.sizes());
  return losses.sum() / (totals[0] + kOfficialEpsilon);
}

torch::Tensor CrossEntropies(const torch::Tensor& logits,
                             const torch::Tensor& targets) {
  return torch::cross_entropy_loss(logits, ToDevice(targets, logits.device()),
                                   /*weight=*/{}, at::Reduction::None);
}

torch::Tensor CrossEntropies(const torch::Tensor& logits,
                             const std::vector<int64_t>& targets) {
  return CrossEntropies(logits, torch::tensor(targets, torch::kInt64));
}

torch::nn::Linear RegisterHeadLinear(const std::string& name,
                                     const EtcConfig& encoder, int64_t outputs,
                                     torch::nn::Module* head) {
  return head->register_module(
      name, MakeLinear(encoder.hidden_size, outputs, kHeadInitializerRange));
}

}  // namespace etc
