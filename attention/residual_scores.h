#ifndef ETC_ATTENTION_RESIDUAL_SCORES_H_
#define ETC_ATTENTION_RESIDUAL_SCORES_H_

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "attention/key_runs.h"
#include "attention/residual_attention.h"
#include "attention/score_storage.h"

namespace etc {

// Residual scores of a softmax, or of a stack of layers.
struct ResidualOptions {
  ResidualAttention mode = ResidualAttention::kOff;
  // beta of kDecay, above 0 and below 1; beta^-n below kLargestDecayFactor for
  // each layer n.
  double decay = kDefaultResidualDecay;
  ScoreStorage storage = ScoreStorage::kStore;
};

// The enums by their names; c10::Error, with all names, for any other.
ResidualAttention ResidualAttentionFromName(std::string_view name);
ScoreStorage ScoreStorageFromName(std::string_view name);

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
