#ifndef ETC_BASE_INITIALIZERS_H_
#define ETC_BASE_INITIALIZERS_H_

#include <torch/nn/modules/linear.h>
#include <torch/types.h>

namespace etc {

// Makes this thread's functions below, while it lives, draw nothing and leave
// weights uninitialised, for modules whose weights are loaded or drawn at once.
class WithoutInitialValues {
 public:
  WithoutInitialValues();
  ~WithoutInitialValues();
  WithoutInitialValues(const WithoutInitialValues&) = delete;
  WithoutInitialValues& operator=(const WithoutInitialValues&) = delete;

 private:
  const bool outer_;
};

// Fills `tensor` with draws from a normal distribution of mean 0, redrawing
// those farther than two standard deviations from 0; the standard deviation is
// not rescaled for that (doc/model.md 0).
void TruncatedNormal_(torch::Tensor tensor, double standard_deviation);

// Fills `tensor` with draws from a uniform distribution on [-bound, bound): by
// Glorot and Bengio (2010) the bound of a matrix is sqrt(6 / (inputs +
// outputs)).
void Uniform_(torch::Tensor tensor, double bound);

// Fills `tensor` with draws from a normal distribution of mean 0.
void Normal_(torch::Tensor tensor, double standard_deviation);

// A linear layer with bias, y = x W^T + b. W [outputs, inputs] is truncated
// normal, b is 0 (doc/model.md 4.3).
torch::nn::Linear MakeLinear(int64_t inputs, int64_t outputs,
                             double standard_deviation);

}  // namespace etc

#endif  // ETC_BASE_INITIALIZERS_H_
