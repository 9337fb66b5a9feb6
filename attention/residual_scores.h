#ifndef ETC_ATTENTION_RESIDUAL_SCORES_H_
#define ETC_ATTENTION_RESIDUAL_SCORES_H_

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "attention/key_runs.h"
#include "attention/residual_attention.h"

namespace etc {

// Storage of the layers' scores, where a fused backend computes them (the
// reference always stores):
//
//   kStore      each layer has tensors of its own, which autograd keeps
//   kReverse    one buffer for all layers: each adds its scores in place, and
//               the backward pass, which computes them again anyway, subtracts
//               them: S_{n-1} = S_n - s_n. Exact up to rounding, about 1e-7 of
//               the largest score over 24 layers: gradients are off by 1e-6 of
//               their size where scores stay below 10, 1e-5 where they reach
//               170, 3e-4 at 3,400 (kGate: in every storage, since its backward
//               pass finds S_{n-1} by the same subtraction)
//   kRecompute  one buffer; before the backward pass of layer n it is filled
//               anew from the queries and keys of layers 0 to n: the same bits
//               as kStore, at a cost that grows with the square of the depth
//
// With one buffer, a layer's scores can be carried to one layer only, which
// the same implementation computes, and are valid until that layer runs; after
// the backward pass they are not, nor after a pass that ended with an
// exception. Any other use, reading included (ScoreTensor) and changes in
// place, throws c10::Error, as does, with kReverse, a second backward pass, and
// one that has to compute scores of a layer whose operands were changed since.
// Gradients of carried scores share a buffer too, and the pass writes
// over them: a hook that keeps them has to copy them.
enum class ScoreStorage { kStore, kReverse, kRecompute };

// The keys that queries see (SoftmaxPattern) in the last layer whose pattern
// has runs: layers without runs compute the scores of all pairs. Null: no such
// layer, or not known.
struct SeenKeys {
  std::shared_ptr<const std::vector<SoftmaxRuns>> runs = {};
  KeyWindow window = kNoWindow;
  // SoftmaxPattern::mask_source of the last layer, if its pattern has no runs:
  // its queries were found to see no keys but those of `runs`. Null: not known.
  std::shared_ptr<const void> compared = {};
};

class ScoreBuffer;
// Scores in a buffer, after `layers` layers, of which the last was the
// `pass`-th that the buffer has seen; null: in tensors of their own.
struct LiveScores {
  std::shared_ptr<ScoreBuffer> buffer = {};
  int64_t layers = 0;
  int64_t pass = 0;
  SeenKeys seen = {};
};

// Carried scores of one block. They may lie in a buffer, whose values change
// with the next layer and with the backward pass: each way to read them, `*x`,
// `x->size(0)` or passing them as a tensor, throws c10::Error once the buffer
// holds others or they were changed in place. A tensor that was read before is
// over the same memory; a copy that lasts is `x->clone()`, or
// InspectAttention's (attention/inspection.h).
class ScoreTensor {
 public:
  ScoreTensor() = default;
  // Implicit: any tensor serves as scores.
  ScoreTensor(torch::Tensor scores,  // NOLINT(google-explicit-constructor)
              LiveScores live = {})
      : scores_(std::move(scores)), live_(std::move(live)) {}

  bool defined() const { return scores_.defined(); }
  const torch::Tensor& operator*() const;
  const torch::Tensor* operator->() const { return &**this; }
  operator const torch::Tensor&() const {  // NOLINT
    return **this;
  }

  // The buffer that the next layer continues in, and the keys that were seen.
  const LiveScores& live() const { return live_; }

 private:
  torch::Tensor scores_;
  LiveScores live_;
};

// Scores that one softmax carries to that of the next layer: ScorePair
// (attention/attention_operands.h) states the shapes. Both are defined, or
// neither.
struct ResidualPair {
  ScoreTensor own = {};
  ScoreTensor other = {};
  // Layers whose scores are in the sum; 0 if they are undefined.
  int64_t layers = 0;

  bool defined() const { return own.defined(); }
};

// The scores that one layer carries to the next, one tensor for each block,
// each (q . k + q . E[id] + bias[id]) / sqrt(head_dim) summed over the layers
// so far (kDecay: times its factor c of each layer): never masked, never
// divided. Undefined tensors mean zeros: nothing carried yet. Those of pairs
// that may not see each other are unspecified, but finite: a query of the next
// layer may see fewer keys than in this one, and no others (c10::Error;
// unchecked where scores are plain tensors). From plain tensors the next layer
// begins a buffer of its own.
//
// With B batch, N heads, L long length, G global length and W = 2r + 1, of
// causal layers r + 1:
struct ResidualScores {
  ScoreTensor g2g = {};  // [B, N, G, G]
  ScoreTensor g2l = {};  // [B, N, G, L]
  ScoreTensor l2g = {};  // [B, N, L, G]
  // [B, N, L, W]; column w of row i is key i + w - r. Where that key lies
  // outside of the sequence the value is 0.
  ScoreTensor l2l = {};
  // Layers whose scores are in the sum, by which kMean and kDecay know their
  // factors: 0 if the tensors are undefined, else at least 1.
  int64_t layers = 0;
};

}  // namespace etc

#endif  // ETC_ATTENTION_RESIDUAL_SCORES_H_
