#include "etc/nn/gradient_checkpoint.h"

#include <ATen/Context.h>
#include <c10/util/Exception.h>
#include <torch/autograd.h>
#include <torch/custom_class.h>

#include <algorithm>
#include <mutex>
#include <optional>

namespace etc {
namespace {

// The state of a device's random number generator.
torch::Tensor GetRandomState(const torch::Device& device) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

void SetRandomState(const torch::Device& device, const torch::Tensor& state) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(state);
}

// The states of all generators that layers on a device draw from: its own, and
// that of the CPU, which seeds kernels on any device.
class RandomStates {
 public:
  explicit RandomStates(const torch::Device& device)
      : device_(device), cpu_(GetRandomState(torch::kCPU)) {
    if (!device.is_cpu()) {
      own_ = GetRandomState(device);
    }
  }
  void Restore() const {
    SetRandomState(torch::kCPU, cpu_);
    if (own_.defined()) {
      SetRandomState(device_, own_);
    }
  }

 private:
  torch::Device device_;
  torch::Tensor cpu_;
  torch::Tensor own_;  // undefined on the CPU
};

// Sets the random states for as long as it lives.
class RandomStateGuard {
 public:
  RandomStateGuard(const torch::Device& device, const RandomStates& states)
      : saved_(device) {
    states.Restore();
  }
  ~RandomStateGuard() { saved_.Restore(); }
  RandomStateGuard(const RandomStateGuard&) = delete;
  RandomStateGuard& operator=(const RandomStateGuard&) = delete;

 private:
  const RandomStates saved_;
};

// What the backward pass needs beside the saved tensors.
struct Recomputation : torch::CustomClassHolder {
  TensorFunction function;
  int64_t inputs = 0;
  torch::Device device = torch::kCPU;
  std::optional<RandomStates> random_states;
};

class CheckpointFunction
    : public torch::autograd::Function<CheckpointFunction> {
 public:
  using Context = torch::autograd::AutogradContext;
  using Variables = torch::autograd::variable_list;

  // `tensors` are the inputs and then the parameters.
  static Variables forward(Context* context,
                           const c10::intrusive_ptr<Recomputation>& again,
                           at::TensorList tensors) {
    const Variables inputs(tensors.begin(), tensors.begin() + again->inputs);
    again->random_states.emplace(again->device);
    context->save_for_backward(Variables(tensors.begin(), tensors.end()));
    context->saved_data["again"] = c10::IValue::make_capsule(again);
    return again->function(inputs);
  }

  static Variables backward(Context* context, Variables gradients) {
    TORCH_CHECK(!torch::GradMode::is_enabled(),
                "gradients of gradients do not pass gradient checkpointing");
    const c10::intrusive_ptr<Recomputation> again =
        c10::static_intrusive_pointer_cast<Recomputation>(
            context->saved_data["again"].toCapsule());
    const Variables saved = context->get_saved_variables();
    const torch::AutoGradMode enable_gradients(true);

    // Of the tensors, those that take part; the others get no gradient.
    Variables inputs, sources;
    std::vector<size_t> source_indices;
    for (size_t i = 0; i < saved.size(); ++i) {
      torch::Tensor tensor = saved[i];
      if (static_cast<int64_t>(i) < again->inputs) {
        tensor = tensor.detach().requires_grad_(tensor.requires_grad());
        inputs.push_back(tensor);
      }
      if (tensor.requires_grad()) {
        sources.push_back(tensor);
        source_indices.push_back(i);
      }
    }

    Variables outputs;
    {
      const RandomStateGuard random(again->device, *again->random_states);
      outputs = again->function(inputs);
    }
    Variables roots, root_gradients;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (gradients[i].defined() && outputs[i].requires_grad()) {
        roots.push_back(outputs[i]);
        root_gradients.push_back(gradients[i]);
      }
    }
    // The first is for `again`, which has none.
    Variables result(saved.size() + 1);
    if (roots.empty() || sources.empty()) {
      return result;
    }
    const Variables found = torch::autograd::grad(
        roots, sources, root_gradients, /*retain_graph=*/c10::nullopt,
        /*create_graph=*/false, /*allow_unused=*/true);
    for (size_t i = 0; i < found.size(); ++i) {
      result[source_indices[i] + 1] = found[i];
    }
    return result;
  }
};

}  // namespace

std::vector<torch::Tensor> CheckpointGradients(
    const TensorFunction& function, const std::vector<torch::Tensor>& inputs,
    const std::vector<torch::Tensor>& parameters) {
  TORCH_CHECK(!inputs.empty(),
              "gradient checkpointing needs at least one input");
  if (!torch::GradMode::is_enabled()) {
    return function(inputs);
  }
  auto again = c10::make_intrusive<Recomputation>();
  again->function = function;
  again->inputs = static_cast<int64_t>(inputs.size());
  again->device = inputs[0].device();
  std::vector<torch::Tensor> tensors = inputs;
  tensors.insert(tensors.end(), parameters.begin(), parameters.end());
  return CheckpointFunction::apply(again, at::TensorList(tensors));
}

std::vector<std::pair<int64_t, int64_t>> CheckpointChains(int64_t layers,
                                                          int64_t period) {
  std::vector<std::pair<int64_t, int64_t>> chains;
  if (period <= 0 || period >= layers) {
    chains.emplace_back(0, layers);
    return chains;
  }
  int64_t begin = 0;
  if (const int64_t remainder = layers % period; remainder > 0) {
    chains.emplace_back(0, remainder);
    begin = remainder;
  }
  for (; begin < layers; begin += period) {
    chains.emplace_back(begin, begin + period);
  }
  return chains;
}

}  // namespace etc
