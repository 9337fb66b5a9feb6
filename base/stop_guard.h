#ifndef ETC_BASE_STOP_GUARD_H_
#define ETC_BASE_STOP_GUARD_H_

#include <torch/types.h>

#include <atomic>
#include <exception>
#include <functional>

namespace etc {

// Thrown by a pass through a model that was stopped.
class Stopped : public std::exception {
 public:
  const char* what() const noexcept override;
};

// While it lives, passes through an encoder that this thread begins, forward
// and backward, throw Stopped at the next layer once `*stop` is true: a step
// over long inputs takes minutes, a layer of it seconds. Like
// torch::NoGradGuard it applies to the thread; the innermost one is used. Null:
// nothing stops; `at_layer` of an outer guard is not called either.
class StopGuard {
 public:
  // `at_layer`, which may be empty, is called before each layer of a forward
  // pass that is not stopped there.
  explicit StopGuard(const std::atomic<bool>* stop,
                     std::function<void()> at_layer = {});
  ~StopGuard();
  StopGuard(const StopGuard&) = delete;
  StopGuard& operator=(const StopGuard&) = delete;

 private:
  friend void ThrowIfStopped();
  friend void ThrowIfStoppedInBackward(const torch::Tensor& tensor);

  const std::atomic<bool>* const stop_;
  const std::function<void()> at_layer_;
  const StopGuard* const outer_;
};

// Throws Stopped if the flag of this thread's guard is true; calls its
// `at_layer` otherwise. For encoders and decoders, before each layer.
void ThrowIfStopped();

// The same in the backward pass, when it reaches `tensor`. Does nothing without
// a guard, or if `tensor` gets no gradient.
void ThrowIfStoppedInBackward(const torch::Tensor& tensor);

}  // namespace etc

#endif  // ETC_BASE_STOP_GUARD_H_
