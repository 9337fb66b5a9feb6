#include "base/initializers.h"

#include <torch/nn/init.h>

namespace etc {

void TruncatedNormal_(torch::Tensor tensor, double standard_deviation) {
  const torch::NoGradGuard no_grad;
  tensor.normal_(0.0, standard_deviation);
  for (;;) {
    const torch::Tensor outside = tensor.abs().gt(2.0 * standard_deviation);
    const int64_t redraws = outside.sum().item<int64_t>();
    if (redraws == 0) {
      return;
    }
    tensor.masked_scatter_(outside, torch::empty({redraws}, tensor.options())
                                        .normal_(0.0, standard_deviation));
  }
}

torch::nn::Linear MakeLinear(int64_t inputs, int64_t outputs,
                             double standard_deviation) {
  torch::nn::Linear linear(inputs, outputs);
  TruncatedNormal_(linear->weight, standard_deviation);
  torch::nn::init::zeros_(linear->bias);
  return linear;
}

}  // namespace etc
