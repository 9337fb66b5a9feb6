#ifndef ETC_BASE_STOP_GUARD_H_
#define ETC_BASE_STOP_GUARD_H_

#include <torch/types.h>

#include <atomic>
#include <exception>

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
// nothing stops.
class StopGuard {
 public:
  explicit StopGuard(const std::atomic<bool>* stop);
  ~StopGuard();
  StopGuard(const StopGuard&) = delete;
  StopGuard& operator=(const StopGuard&) = delete;

 private:
  const std::atomic<bool>* const outer_;
};

// Throws Stopped if the flag of this thread's guard is true.
void ThrowIfStopped();

// The same in the backward pass, when it reaches `tensor`. Does nothing without
// a guard, or if `tensor` gets no gradient.
void ThrowIfStoppedInBackward(const torch::Tensor& tensor);

}  // namespace etc

#endif  // ETC_BASE_STOP_GUARD_H_
