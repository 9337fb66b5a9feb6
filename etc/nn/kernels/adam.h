#ifndef ETC_ETC_NN_KERNELS_ADAM_H_
#define ETC_ETC_NN_KERNELS_ADAM_H_

#include <cstdint>

namespace etc::kernels {

// One update of the Adam family, element by element, in float32:
//
//   g = gradient_factor * gradient
//   m = beta1 m + (1 - beta1) g
//   v = beta2 v + (1 - beta2) g^2
//   u = m / (root_factor * sqrt(v) + epsilon) + decay * p
//   p = p - rate * u
//
// with m the mean, v the mean square and p the parameter. Plain pointers, no
// allocation, no threads; nothing is checked, buffers must not overlap.
struct AdamStep {
  double gradient_factor = 1.0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double root_factor = 1.0;
  double epsilon = 1e-6;
  double decay = 0.0;
  double rate = 0.0;
};

// A part of one parameter, with its gradient and state.
struct AdamElements {
  int64_t count = 0;
  const float* gradient = nullptr;
  float* mean = nullptr;
  float* mean_square = nullptr;
  float* parameter = nullptr;
};

// Does all of the above in one pass.
void UpdateParameter(const AdamStep& step, const AdamElements& elements);

// The same in two, for rates that depend on norms: first m and v, and the sums
// of squares of p and u; then p.
struct SquaredNorms {
  double parameter = 0.0;
  double direction = 0.0;
};
SquaredNorms UpdateMeans(const AdamStep& step, const AdamElements& elements);
void MoveParameter(const AdamStep& step, const AdamElements& elements);

// The sum of squares; rows of 1024 are summed in float, these in double.
double SquaredNorm(int64_t count, const float* values);

}  // namespace etc::kernels

#endif  // ETC_ETC_NN_KERNELS_ADAM_H_
