#ifndef ETC_TASKS_TRAIN_ADAM_UPDATE_H_
#define ETC_TASKS_TRAIN_ADAM_UPDATE_H_

#include <torch/types.h>

#include <vector>

namespace etc {

// One update of one parameter p along its gradient, by its running means:
//
//   g = gradient_factor gradient
//   m = beta1 m + (1 - beta1) g;   v = beta2 v + (1 - beta2) g^2
//   u = s m / c1 / (sqrt(v / c2) + epsilon) + weight_decay p
//   p = p - learning_rate r u
//
// c1 and c2 correct the means, which start at 0 (1: not at all), and s, the
// step_factor, changes the step but not the decay (0: no step). With
// `by_norms` r is |p| / |u|, 1 if either is 0; else r is 1.
struct AdamUpdate {
  torch::Tensor parameter;    // changed in place
  torch::Tensor gradient;     // of its shape
  torch::Tensor mean;         // m, of its shape; changed in place
  torch::Tensor mean_square;  // v, of its shape; changed in place
  double gradient_factor = 1.0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double mean_correction = 1.0;
  double square_correction = 1.0;
  double step_factor = 1.0;
  double epsilon = 1e-6;
  double weight_decay = 0.0;
  bool by_norms = false;
  double learning_rate = 0.0;
};

// Applies all of them, on all threads at once: contiguous float32 on the CPU by
// etc/nn/kernels/adam.h, anything else by UpdateByDefinition_. Returns the
// sum of the squares of all changes, up to the rounding of the parameters, and
// waits for another device than the CPU only to return it. The same at any
// number of threads.
double UpdateAll_(const std::vector<AdamUpdate>& updates);

// The formulas, in LibTorch's operations. Returns the same.
double UpdateByDefinition_(const AdamUpdate& update);

// The sum of the squares of many tensors, of any dtype on any device: in
// double, but rows of 1,024 of contiguous float32 on the CPU in float32
// (etc/nn/kernels/adam.h). Waits for the device once. The same at any number of
// threads.
double TotalSquaredNorm(const std::vector<torch::Tensor>& tensors);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_ADAM_UPDATE_H_
