#include "tasks/pretrain/heads/mlm_head.h"

#include <c10/util/Exception.h>
#include <torch/utils.h>

#include "base/apply_linear.h"
#include "base/check_shape.h"
#include "base/initializers.h"
#include "etc/nn/activation.h"
#include "etc/nn/residual_norm.h"
#include "tasks/inputs/text_head.h"

namespace etc {

MlmHeadImpl::MlmHeadImpl(const EtcConfig& config)
    : activation_(ActivationFromName(config.hidden_act)) {
  const int64_t width = config.token_embedding_size();
  transform_ = register_module(
      "transform",
      MakeLinear(config.hidden_size, width, config.initializer_range));
  norm_ =
      register_module("norm", MakeLayerNorm(width, config.layer_norm_epsilon));
  output_bias_ =
      register_parameter("output_bias", torch::zeros({config.vocab_size}));
}

torch::Tensor MlmHeadImpl::Hidden(const torch::Tensor& x) {
  return ApplyLayerNorm(
      Activate(activation_, products_.Apply(products_.Input(x), transform_)),
      norm_);
}

MlmLosses MlmHeadImpl::forward(const torch::Tensor& x,
                               const torch::Tensor& labels,
                               const torch::Tensor& table) {
  return ComputeMlmLosses({.hidden = Hidden(x),
                           .table = table,
                           .bias = output_bias_,
                           .labels = labels},
                          {.precision = products_.precision()});
}

void MlmHeadImpl::set_linear_precision(LinearPrecision precision) {
  products_.set_precision(precision);
}

NspLayers MakeNspLayers(int64_t hidden_size, double initializer_range) {
  return {.pooler = MakeLinear(hidden_size, hidden_size, initializer_range),
          .classifier = MakeLinear(hidden_size, 2, initializer_range)};
}

NspLosses ComputeNspLosses(const torch::Tensor& first,
                           const torch::Tensor& labels,
                           const NspLayers& layers) {
  TORCH_CHECK(first.dim() == 2, "first should be [B, H], but is ",
              first.sizes());
  ETC_CHECK_SHAPE(labels, {first.size(0)});
  const torch::Tensor logits =  // [B, 2]
      ApplyLinear(Pool(first, layers.pooler), layers.classifier);
  return {.losses = torch::log_softmax(logits, 1)
                        .gather(1, labels.unsqueeze(1))
                        .squeeze(1)
                        .neg(),
          .correct = std::get<1>(logits.max(1)).eq(labels)};
}

}  // namespace etc
