#include "base/stop_guard.h"

#include <torch/autograd.h>

#include <utility>

namespace etc {
namespace {

thread_local const StopGuard* current_guard = nullptr;

void ThrowIf(const std::atomic<bool>* stop) {
  if (stop != nullptr && stop->load()) {
    throw Stopped();
  }
}

}  // namespace

const char* Stopped::what() const noexcept { return "the pass was stopped"; }

StopGuard::StopGuard(const std::atomic<bool>* stop,
                     std::function<void()> at_layer)
    : stop_(stop), at_layer_(std::move(at_layer)), outer_(current_guard) {
  current_guard = this;
}

StopGuard::~StopGuard() { current_guard = outer_; }

void ThrowIfStopped() {
  if (current_guard == nullptr) {
    return;
  }
  ThrowIf(current_guard->stop_);
  if (current_guard->at_layer_ != nullptr) {
    current_guard->at_layer_();
  }
}

void ThrowIfStoppedInBackward(const torch::Tensor& tensor) {
  if (current_guard != nullptr && current_guard->stop_ != nullptr &&
      tensor.requires_grad()) {
    // The flag outlives the graph: the guard's owner runs the backward pass
    // too.
    tensor.register_hook(
        [stop = current_guard->stop_](const torch::Tensor&) { ThrowIf(stop); });
  }
}

}  // namespace etc
