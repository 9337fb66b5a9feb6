#include "etc/nn/gradient_checkpoint.h"

#include <c10/util/Exception.h>
#include <torch/autograd.h>
#include <torch/custom_class.h>

#include <cstdint>

#include "base/check_tensor.h"
#include "base/dropout_seeds.h"

namespace etc {
namespace {

// Data for the backward pass beside the saved tensors.
struct Recomputation : torch::CustomClassHolder {
  TensorFunction function;
  int64_t inputs = 0;
  int64_t changed = 0;
  std::function<std::vector<torch::Tensor>()> changed_again;
  std::vector<uint64_t> dropout_seeds;  // that the forward pass drew
};

class CheckpointFunction
    : public torch::autograd::Function<CheckpointFunction> {
 public:
  using Context = torch::autograd::AutogradContext;
  using Variables = torch::autograd::variable_list;

  // `tensors` are the inputs, those that are changed, and the parameters.
  static Variables forward(Context* context,
                           const c10::intrusive_ptr<Recomputation>& again,
                           at::TensorList tensors) {
    const auto* const changed = tensors.begin() + again->inputs;
    const auto* const parameters = changed + again->changed;
    Variables saved(tensors.begin(), changed);
    saved.insert(saved.end(), parameters, tensors.end());
    context->save_for_backward(saved);
    // Zeros for an output that nobody read, such as residual scores, may be
    // larger than all that is kept.
    context->set_materialize_grads(false);
    context->saved_data["again"] = c10::IValue::make_capsule(again);
    const RecordDropoutSeeds record(&again->dropout_seeds);
    return again->function(Variables(tensors.begin(), parameters));
  }

  static Variables backward(Context* context, Variables gradients) {
    RefuseSecondGradients("gradient checkpointing");
    const c10::intrusive_ptr<Recomputation> again =
        c10::static_intrusive_pointer_cast<Recomputation>(
            context->saved_data["again"].toCapsule());
    Variables tensors = context->get_saved_variables();
    const torch::AutoGradMode enable_gradients(true);
    if (again->changed_again) {
      const Variables changed = again->changed_again();
      TORCH_CHECK(static_cast<int64_t>(changed.size()) == again->changed,
                  "a recomputed function takes ", again->changed,
                  " tensors that it changes, but is given ", changed.size());
      tensors.insert(tensors.begin() + again->inputs, changed.begin(),
                     changed.end());
    }

    // Differentiates only tensors that require a gradient; the others get none.
    Variables inputs, sources;
    std::vector<size_t> source_indices;
    for (size_t i = 0; i < tensors.size(); ++i) {
      torch::Tensor tensor = tensors[i];
      const auto index = static_cast<int64_t>(i);
      if (index < again->inputs) {
        tensor = tensor.detach().requires_grad_(tensor.requires_grad());
      }
      if (index < again->inputs + again->changed) {
        inputs.push_back(tensor);
      }
      if (tensor.requires_grad()) {
        sources.push_back(tensor);
        source_indices.push_back(i);
      }
    }

    Variables outputs;
    RunWithSeeds(again->dropout_seeds,
                 [&] { outputs = again->function(inputs); });
    Variables roots, root_gradients;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (gradients[i].defined() && outputs[i].requires_grad()) {
        roots.push_back(outputs[i]);
        root_gradients.push_back(gradients[i]);
      }
    }
    // The first is for `again`, which has none.
    Variables result(tensors.size() + 1);
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
    const std::vector<torch::Tensor>& parameters,
    const ChangedInputs& changed) {
  TORCH_CHECK(!inputs.empty(),
              "gradient checkpointing needs at least one input");
  std::vector<torch::Tensor> tensors = inputs;
  tensors.insert(tensors.end(), changed.first.begin(), changed.first.end());
  if (!torch::GradMode::is_enabled()) {
    return function(tensors);
  }
  auto again = c10::make_intrusive<Recomputation>();
  again->function = function;
  again->inputs = static_cast<int64_t>(inputs.size());
  again->changed = static_cast<int64_t>(changed.first.size());
  again->changed_again = changed.again;
  tensors.insert(tensors.end(), parameters.begin(), parameters.end());
  return CheckpointFunction::apply(again, at::TensorList(tensors));
}

void RunWithSeeds(const std::vector<uint64_t>& seeds,
                  const std::function<void()>& function) {
  std::vector<uint64_t> drawn;
  {
    const ReplayDropoutSeeds replay(seeds);
    const RecordDropoutSeeds record(&drawn);
    function();
  }
  TORCH_CHECK(drawn.size() == seeds.size(), "a recomputation should draw the ",
              seeds.size(), " seeds of dropout of the forward pass, but draws ",
              drawn.size(),
              ": train() and eval() should be called after backward()");
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
