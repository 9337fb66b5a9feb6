#ifndef ETC_ETC_NN_SMOOTHED_LOSS_H_
#define ETC_ETC_NN_SMOOTHED_LOSS_H_

#include <torch/types.h>

#include <cstdint>

#include "base/linear.h"

namespace etc {

// Tokens of a decoder and their targets. d hidden size, V vocabulary.
struct SmoothedLossInput {
  torch::Tensor states = {};  // [..., d]
  torch::Tensor weight = {};  // [V, d], the output table
  // The same in products, LinearProducts::Weight(weight), which says their
  // precision; left out: LibTorch's products.
  LinearInput factor = {};
  torch::Tensor targets = {};  // [...] int64, in [0, V)
  // Tokens with this target, padding, have no loss.
  int64_t ignored = 1;
  // epsilon, in [0, 1).
  double smoothing = 0.1;
};

// Losses of a batch.
struct SmoothedLoss {
  // Sums over the tokens that are not ignored, scalars in the dtype of the
  // states, in nats; `nll`, that of the targets alone, without gradient.
  torch::Tensor loss = {};
  torch::Tensor nll = {};
  int64_t tokens = 0;
};

// Cross entropy with label smoothing (Szegedy et al. 2016) as fairseq had it in
// 2019 (doc/translation.md 4.2). With lp the log-softmax of states weight^T and
// y the target, for each token
//
//   nll  = -lp[y]
//   loss = (1 - epsilon) nll + (epsilon / V) sum over all v of -lp[v]
//
// Computed in chunks of 1024 tokens, gradients along with the loss, so that of
// [tokens, V] never more than a chunk exists; float32 on the CPU with a
// `factor` goes through etc/nn/kernels/smoothed_loss.h and is the same at any
// number of threads. Differentiable in states and weight, once (c10::Error).
// Throws c10::Error if shapes and dtypes disagree, and for targets outside of
// the vocabulary (on the CPU).
SmoothedLoss SmoothedCrossEntropy(const SmoothedLossInput& input);

// The definition, in LibTorch's operations; of any dtype, on any device, and
// differentiable twice. Takes no notice of `factor`.
SmoothedLoss SmoothedCrossEntropyReference(const SmoothedLossInput& input);

}  // namespace etc

#endif  // ETC_ETC_NN_SMOOTHED_LOSS_H_
