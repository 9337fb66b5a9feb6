#ifndef ETC_ATTENTION_ENTROPY_H_
#define ETC_ATTENTION_ENTROPY_H_

#include <torch/types.h>

#include <limits>

namespace etc {

// `p` with a least value for logarithms, the smallest normal number of its
// dtype (float32 or float64), so that 0 ln 0 is 0. A new tensor.
inline torch::Tensor AboveZero(const torch::Tensor& p) {
  return p.clamp_min(p.scalar_type() == torch::kFloat64
                         ? std::numeric_limits<double>::min()
                         : std::numeric_limits<float>::min());
}

// Entropy of attention weights in nats, the sum of EntropyTerm
// (attention/entropy_term.h) over the last axis:
//
//   p:       [..., keys], float32 or float64, not negative
//   returns: [...], dtype of `p`; 0 without keys
inline torch::Tensor EntropyOfWeights(const torch::Tensor& p) {
  return AboveZero(p).log_().mul_(p).sum(-1).neg_();
}

}  // namespace etc

#endif  // ETC_ATTENTION_ENTROPY_H_
