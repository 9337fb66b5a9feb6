#include "tasks/typed_head.h"

#include <torch/nn/functional/loss.h>

namespace etc {

torch::Tensor CrossEntropies(const torch::Tensor& logits,
                             const torch::Tensor& targets) {
  return torch::cross_entropy_loss(logits, targets.to(logits.device()),
                                   /*weight=*/{}, at::Reduction::None);
}

torch::Tensor CrossEntropies(const torch::Tensor& logits,
                             const std::vector<int64_t>& targets) {
  return CrossEntropies(logits, torch::tensor(targets, torch::kInt64));
}

}  // namespace etc
