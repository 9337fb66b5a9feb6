#include "tasks/task/benchmark_head.h"

#include <torch/nn/functional/loss.h>

#include "base/initializers.h"
#include "base/to_device.h"

namespace etc {

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
