#ifndef ETC_ETC_SLICED_LAYER_H_
#define ETC_ETC_SLICED_LAYER_H_

#include <torch/types.h>

#include <memory>
#include <vector>

#include "attention/attention_inputs.h"
#include "attention/output_rows.h"
#include "attention/residual_scores.h"
#include "etc/encoder_layer.h"
#include "etc/layer_slices.h"

namespace etc {

// The two streams, and the carried scores of each group of LayerSlices::heads
// heads. Each group has its own buffer of scores.
struct SlicedState {
  torch::Tensor long_states;           // [B, L, H]; of rows: [R, H]
  torch::Tensor global_states;         // [B, G, H]; of rows: [S, H]
  std::vector<ResidualScores> scores;  // empty ahead of the first layer
};

// A layer with the least memory: `layer`, computed in slices of heads and
// tokens, which keeps for the backward pass its input in memory, or with
// LayerSlices::directory its input and the contexts in files, and computes the
// rest again (doc/model.md 4.4). Beside these and the carried scores, memory is
// that of a few heads of all tokens and of a few tokens of all heads, and the
// gradients of one layer's projections.
//
//   attention, for some heads after the others:
//     q, k, v = x W + b, contexts C = softmax(...) v
//   the rest, for some tokens after the others:
//     y = Finish(C, x)
//   backward: C again unless it was kept; dC and a part of dx from dy, tokens
//   by tokens; dq, dk, dv from dC, heads by heads; the rest of dx from these,
//   tokens by tokens
//
// The same numbers as EtcEncoderLayer::forward up to rounding, in training too:
// the same seeds are drawn and the same elements dropped. Scores should be
// stored in ScoreStorage::kReverse. Refused (c10::Error) are gradients of
// gradients, and a backward pass after parameters changed in place or the
// layer's modes did (LayerModes). Without gradients (GradMode) nothing is kept.
// Throws TensorFileError where files cannot be (base/tensor_file.h).
SlicedState RunInSlices(const std::shared_ptr<EtcEncoderLayerImpl>& layer,
                        const SlicedState& below,
                        const AttentionInputs& attention,
                        const ResidualOptions& residual, const OutputRows& rows,
                        const LayerSlices& slices);

}  // namespace etc

#endif  // ETC_ETC_SLICED_LAYER_H_
