#ifndef ETC_ETC_ENCODER_CHECKPOINT_H_
#define ETC_ETC_ENCODER_CHECKPOINT_H_

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "attention/residual_scores.h"
#include "etc/encoder_layer.h"

namespace etc {

// Neighbouring layers that the backward pass runs once more (doc/model.md 4.4).
struct CheckpointedLayers {
  // From the state below them to that above. `is_again`: in the backward pass.
  std::function<EncoderState(EncoderState below, bool is_again)> run;
  std::vector<torch::Tensor> parameters;  // of all of them
  int64_t count = 1;
  ScoreStorage storage = ScoreStorage::kReverse;
};

// Runs them, keeping only the state below for the backward pass
// (etc/nn/gradient_checkpoint.h).
//
// A single layer with kReverse keeps no residual scores: the backward pass
// comes to it with the scores that it left in the buffer of the stack, computes
// its queries and keys from its input, takes its scores out of the sum, and so
// has those from below. Several layers, and scores in no such buffer, keep a
// copy of the scores from below, and start a buffer of their own from it.
EncoderState CheckpointLayers(const EncoderState& state,
                              const CheckpointedLayers& layers);

}  // namespace etc

#endif  // ETC_ETC_ENCODER_CHECKPOINT_H_
