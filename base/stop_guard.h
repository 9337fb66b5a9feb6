#ifndef ETC_BASE_STOP_GUARD_H_
#define ETC_BASE_STOP_GUARD_H_

#include <torch/types.h>

#include <atomic>
#include <exception>

namespace etc {

// What a pass through a model throws that was stopped.
class Stopped : public std::exception {
 public:
  const char* what() const noexcept override;
};

// As long as it lives, passes through an encoder that this thread begins,
// forward and backward, end with Stopped at the next layer once `*stop` is
// true: a step over long inputs takes minutes, a layer of it seconds. Like
// torch::NoGradGuard it belongs to the thread; the innermost one decides. Null:
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

// Throws Stopped if the guard of this thread says so.
void ThrowIfStopped();

// The same in the backward pass, when it has come to `tensor`. Does nothing
// without a guard, or if no gradient goes there.
void ThrowIfStoppedInBackward(const torch::Tensor& tensor);

}  // namespace etc

#endif  // ETC_BASE_STOP_GUARD_H_
