#include "tasks/pretrain/mlm_head.h"

#include <torch/utils.h>

#include "base/initializers.h"
#include "etc/embedding.h"
#include "etc/nn/residual_norm.h"

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

torch::Tensor MlmHeadImpl::Logits(const torch::Tensor& x,
                                  const torch::Tensor& table) {
  const torch::Tensor hidden = Hidden(x);
  return LinearProducts::Apply(products_.Input(hidden), products_.Input(table),
                               output_bias_);
}

void MlmHeadImpl::set_linear_precision(LinearPrecision precision) {
  products_.set_precision(precision);
}

}  // namespace etc
