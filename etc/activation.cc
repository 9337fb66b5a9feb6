#include "etc/activation.h"

#include <c10/util/Exception.h>

#include "absl/strings/ascii.h"

namespace etc {

Activation ActivationFromName(const std::string& name) {
  const std::string lower = absl::AsciiStrToLower(name);
  if (lower.empty() || lower == "linear") {
    return Activation::kLinear;
  }
  if (lower == "relu") {
    return Activation::kRelu;
  }
  if (lower == "gelu") {
    return Activation::kGelu;
  }
  if (lower == "gelu_erf") {
    return Activation::kGeluErf;
  }
  if (lower == "tanh") {
    return Activation::kTanh;
  }
  TORCH_CHECK(
      false,
      "activation should be relu, gelu, gelu_erf, tanh or linear, but is ",
      name);
}

torch::Tensor Activate(Activation activation, const torch::Tensor& input) {
  switch (activation) {
    case Activation::kLinear:
      return input;
    case Activation::kRelu:
      return torch::relu(input);
    case Activation::kGelu:
      return torch::gelu(input, "tanh");
    case Activation::kGeluErf:
      return torch::gelu(input, "none");
    case Activation::kTanh:
      return torch::tanh(input);
  }
  TORCH_CHECK(false, "no such activation");
}

}  // namespace etc
