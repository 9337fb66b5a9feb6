#include "base/initializers.h"

#include <torch/nn/init.h>

namespace etc {
namespace {

thread_local bool leaves_uninitialised = false;

// torch::nn::Linear draws weights when it is made.
torch::nn::Linear UninitialisedLinear(int64_t inputs, int64_t outputs) {
  torch::nn::Linear linear(1, 0);
  linear->options = torch::nn::LinearOptions(inputs, outputs);
  linear->weight.set_data(torch::empty({outputs, inputs}));
  linear->bias.set_data(torch::empty({outputs}));
  return linear;
}

}  // namespace

WithoutInitialValues::WithoutInitialValues() : outer_(leaves_uninitialised) {
  leaves_uninitialised = true;
}

WithoutInitialValues::~WithoutInitialValues() { leaves_uninitialised = outer_; }

void TruncatedNormal_(torch::Tensor tensor, double standard_deviation) {
  if (leaves_uninitialised) {
    return;
  }
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

void Uniform_(torch::Tensor tensor, double bound) {
  if (!leaves_uninitialised) {
    const torch::NoGradGuard no_grad;
    tensor.uniform_(-bound, bound);
  }
}

void Normal_(torch::Tensor tensor, double standard_deviation) {
  if (!leaves_uninitialised) {
    const torch::NoGradGuard no_grad;
    tensor.normal_(0.0, standard_deviation);
  }
}

torch::nn::Linear MakeLinear(int64_t inputs, int64_t outputs,
                             double standard_deviation) {
  if (leaves_uninitialised) {
    return UninitialisedLinear(inputs, outputs);
  }
  torch::nn::Linear linear(inputs, outputs);
  TruncatedNormal_(linear->weight, standard_deviation);
  torch::nn::init::zeros_(linear->bias);
  return linear;
}

}  // namespace etc
