#ifndef ETC_BASE_CLONE_MODULE_H_
#define ETC_BASE_CLONE_MODULE_H_

#include <c10/util/Exception.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include <memory>

#include "base/initializers.h"

namespace etc {

// Gives `to`, a module of the same structure, copies of all parameters and
// buffers of `from`, on `device` or where they are, in their dtype, and the
// same of each that needs a gradient; and the training mode of each module.
// Gradients are not copied. Throws c10::Error if names differ.
void CopyModuleState(const torch::nn::Module& from,
                     const c10::optional<torch::Device>& device,
                     torch::nn::Module* to);

// The bodies of clone() and clone_() of a module: of those of LibTorch, which
// construct layers anew, each layer once more within each that contains it, and
// draw random weights for them. `make()` gives a std::shared_ptr<Derived> of
// the same structure and settings.
template <typename Derived, typename Make>
std::shared_ptr<torch::nn::Module> CloneModule(
    const Derived& from, const c10::optional<torch::Device>& device,
    const Make& make) {
  const WithoutInitialValues uninitialised;
  const std::shared_ptr<Derived> copy = make();
  CopyModuleState(from, device, copy.get());
  return copy;
}

template <typename Derived>
void BecomeCloneOf(torch::nn::Module& other,
                   const c10::optional<torch::Device>& device, Derived* self) {
  const auto copy = std::dynamic_pointer_cast<Derived>(other.clone(device));
  TORCH_CHECK(copy != nullptr, "a clone of ", other.name(),
              " does not fit a module of another class");
  *self = *copy;
}

}  // namespace etc

#endif  // ETC_BASE_CLONE_MODULE_H_
