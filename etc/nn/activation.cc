#include "etc/nn/activation.h"

#include <c10/util/Exception.h>
#include <torch/autograd.h>
#include <torch/utils.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "base/check_tensor.h"
#include "base/parallel_tasks.h"

namespace etc {
namespace {

using Context = torch::autograd::AutogradContext;
using Variables = torch::autograd::variable_list;

const char* GeluForm(Activation activation) {
  return activation == Activation::kGelu ? "tanh" : "none";
}

// Computes by LibTorch into `output`, which has the shape of `input`.
void ActivateInto(Activation activation, const torch::Tensor& input,
                  torch::Tensor output) {
  if (activation == Activation::kTanh) {
    at::tanh_out(output, input);
  } else {
    at::gelu_out(output, input, GeluForm(activation));
  }
}

// `kept` is the output for tanh and the input for the others.
void GradientInto(Activation activation, const torch::Tensor& gradient,
                  const torch::Tensor& kept, torch::Tensor result) {
  if (activation == Activation::kTanh) {
    at::tanh_backward_out(result, gradient, kept);
  } else {
    at::gelu_backward_out(result, gradient, kept, GeluForm(activation));
  }
}

// Calls function(part) for parts of tensors of `count` elements: part(tensor)
// is a tensor's, [elements], all of one range.
template <typename Function>
void ForEachPart(int64_t count, const Function& function) {
  constexpr int64_t kSize = int64_t{1} << 14;
  ForEachTask((count + kSize - 1) / kSize, /*floats=*/0,
              [&](int64_t task, float*) {
                const torch::NoGradGuard no_grad;
                const int64_t begin = task * kSize;
                const int64_t size = std::min(kSize, count - begin);
                function([&](const torch::Tensor& tensor) {
                  return tensor.view({-1}).narrow(0, begin, size);
                });
              });
}

// Float32 on the CPU: LibTorch's vector loop and its remainder differ in the
// last bits, and the position of the remainder would follow from the number of
// threads. Parts of a fixed size do not.
class ActivationFunction
    : public torch::autograd::Function<ActivationFunction> {
 public:
  static Variables forward(Context* context, const torch::Tensor& input,
                           int64_t number) {
    const auto activation = static_cast<Activation>(number);
    const torch::Tensor from = input.contiguous();
    const torch::Tensor output = torch::empty_like(from);
    ForEachPart(from.numel(), [&](const auto& part) {
      ActivateInto(activation, part(from), part(output));
    });
    context->save_for_backward(
        {activation == Activation::kTanh ? output : from});
    context->saved_data["activation"] = number;
    return {output};
  }

  static Variables backward(Context* context, Variables gradients) {
    RefuseSecondGradients("activations of float32 on the CPU", "float64");
    const auto activation =
        static_cast<Activation>(context->saved_data["activation"].toInt());
    const torch::Tensor kept = context->get_saved_variables()[0];
    const torch::Tensor gradient = gradients[0].contiguous();
    const torch::Tensor result = torch::empty_like(gradient);
    ForEachPart(gradient.numel(), [&](const auto& part) {
      GradientInto(activation, part(gradient), part(kept), part(result));
    });
    return {result, torch::Tensor()};
  }
};

torch::Tensor ActivateInParts(Activation activation,
                              const torch::Tensor& input) {
  return ActivationFunction::apply(input, static_cast<int64_t>(activation))[0];
}

}  // namespace

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
  TORCH_CHECK(
      lower == "tanh",
      "activation should be relu, gelu, gelu_erf, tanh or linear, but is ",
      name);
  return Activation::kTanh;
}

torch::Tensor Activate(Activation activation, const torch::Tensor& input) {
  const bool is_exact =
      activation == Activation::kLinear || activation == Activation::kRelu;
  if (!is_exact && input.device().is_cpu() &&
      input.scalar_type() == torch::kFloat32) {
    return ActivateInParts(activation, input);
  }
  switch (activation) {
    case Activation::kLinear:
      return input;
    case Activation::kRelu:
      return torch::relu(input);
    case Activation::kGelu:
    case Activation::kGeluErf:
      return torch::gelu(input, GeluForm(activation));
    case Activation::kTanh:
      return torch::tanh(input);
  }
  TORCH_CHECK(false, "no such activation");
}

}  // namespace etc
