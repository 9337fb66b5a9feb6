#include "etc/nn/gradient_checkpoint.h"

#include <c10/util/Exception.h>
#include <torch/autograd.h>
#include <torch/custom_class.h>

#include <cstdint>

#include "base/dropout_seeds.h"

namespace etc {
namespace {

// Data for the backward pass beside the saved tensors.
struct Recomputation : torch::CustomClassHolder {
  TensorFunction function;
  int64_t inputs = 0;
  std::vector<uint64_t> dropout_seeds;  // that the forward pass drew
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
    context->save_for_backward(Variables(tensors.begin(), tensors.end()));
    context->saved_data["again"] = c10::IValue::make_capsule(again);
    const RecordDropoutSeeds record(&again->dropout_seeds);
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

    // Differentiates only tensors that require a gradient; the others get none.
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
      const ReplayDropoutSeeds replay(again->dropout_seeds);
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
