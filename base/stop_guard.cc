#include "base/stop_guard.h"

#include <torch/autograd.h>

namespace etc {
namespace {

thread_local const std::atomic<bool>* current_stop = nullptr;

void ThrowIf(const std::atomic<bool>* stop) {
  if (stop != nullptr && stop->load()) {
    throw Stopped();
  }
}

}  // namespace

const char* Stopped::what() const noexcept { return "the pass was stopped"; }

StopGuard::StopGuard(const std::atomic<bool>* stop) : outer_(current_stop) {
  current_stop = stop;
}

StopGuard::~StopGuard() { current_stop = outer_; }

void ThrowIfStopped() { ThrowIf(current_stop); }

void ThrowIfStoppedInBackward(const torch::Tensor& tensor) {
  if (current_stop != nullptr && tensor.requires_grad()) {
    // The flag outlives the graph: the guard's owner runs the backward pass
    // too.
    tensor.register_hook(
        [stop = current_stop](const torch::Tensor&) { ThrowIf(stop); });
  }
}

}  // namespace etc
