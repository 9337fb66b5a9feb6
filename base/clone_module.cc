#include "base/clone_module.h"

#include <c10/util/Exception.h>

#include <string>

namespace etc {
namespace {

using Items = torch::OrderedDict<std::string, torch::Tensor>;

void CopyTensors(const Items& from, const c10::optional<torch::Device>& device,
                 const Items& to) {
  TORCH_CHECK(from.size() == to.size(), "a module with ", from.size(),
              " parameters or buffers cannot be cloned: its class has ",
              to.size());
  for (const auto& item : from) {
    const torch::Tensor* const target = to.find(item.key());
    TORCH_CHECK(target != nullptr,
                "a module cannot be cloned: its class does not know its ",
                item.key());
    const torch::Tensor& source = item.value();
    torch::Tensor tensor = *target;
    tensor.set_data(source.detach().to(device.value_or(source.device()),
                                       source.scalar_type(),
                                       /*non_blocking=*/false, /*copy=*/true));
    tensor.requires_grad_(source.requires_grad());
  }
}

}  // namespace

void CopyModuleState(const torch::nn::Module& from,
                     const c10::optional<torch::Device>& device,
                     torch::nn::Module* to) {
  const torch::NoGradGuard no_grad;
  CopyTensors(from.named_parameters(), device, to->named_parameters());
  CopyTensors(from.named_buffers(), device, to->named_buffers());
  to->train(from.is_training());
  // A module comes before those that it contains, whose mode train() sets too.
  const auto targets = to->named_modules("", /*include_self=*/false);
  for (const auto& module : from.named_modules("", /*include_self=*/false)) {
    if (const auto* target = targets.find(module.key())) {
      (*target)->train(module.value()->is_training());
    }
  }
}

}  // namespace etc
