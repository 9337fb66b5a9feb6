#include "tasks/pretrain/nsp_head.h"

#include <c10/util/Exception.h>
#include <torch/utils.h>

#include "base/apply_linear.h"
#include "base/check_shape.h"
#include "base/initializers.h"
#include "etc/nn/activation.h"

namespace etc {

NspLayers MakeNspLayers(int64_t hidden_size, double initializer_range) {
  return {.pooler = MakeLinear(hidden_size, hidden_size, initializer_range),
          .classifier = MakeLinear(hidden_size, 2, initializer_range)};
}

torch::Tensor Pool(const torch::Tensor& first,
                   const torch::nn::Linear& pooler) {
  return Activate(Activation::kTanh, ApplyLinear(first, pooler));
}

NspLosses ComputeNspLosses(const torch::Tensor& first,
                           const torch::Tensor& labels,
                           const NspLayers& layers) {
  TORCH_CHECK(first.dim() == 2, "first should be [B, H], but is ",
              first.sizes());
  ETC_CHECK_SHAPE(labels, {first.size(0)});
  const torch::Tensor logits =  // [B, 2]
      ApplyLinear(Pool(first, layers.pooler), layers.classifier);
  return {.logits = logits,
          .losses = torch::log_softmax(logits, 1)
                        .gather(1, labels.unsqueeze(1))
                        .squeeze(1)
                        .neg(),
          .correct = std::get<1>(logits.max(1)).eq(labels)};
}

}  // namespace etc
