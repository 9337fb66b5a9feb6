#ifndef ETC_TASKS_PRETRAIN_HEADS_MLM_LOSS_H_
#define ETC_TASKS_PRETRAIN_HEADS_MLM_LOSS_H_

#include <torch/types.h>

#include <cstdint>

#include "base/linear.h"

namespace etc {

// The tied decoder of masked-language modelling. M predictions, E the width of
// the token table, V the size of the vocabulary.
struct MlmDecoderInput {
  torch::Tensor hidden;  // [M, E], floating
  torch::Tensor table;   // [V, E], the encoder's token table itself
  torch::Tensor bias;    // [V]
  torch::Tensor labels;  // [M] int64, each in [0, V)
};

struct MlmDecoderOptions {
  // Precision of the products, as in the encoder: float32 on the CPU only.
  LinearPrecision precision = LinearPrecision::kFloat32;
  // The most bytes of logits at a time; 0: 8 MiB on the CPU, where they stay in
  // its cache, and 128 MiB elsewhere. (One column of at most 4096 rows is
  // computed in any case.)
  int64_t slice_bytes = 0;
  // Bytes of slices that are kept for the backward pass, if there is one,
  // instead of being recomputed.
  int64_t kept_bytes = int64_t{64} << 20;
};

struct MlmLosses {
  // - log softmax(hidden table^T + bias)[label] of each prediction: [M],
  // float32 or, of doubles, float64.
  torch::Tensor losses;
  // True where the label is the first of the largest logits: [M] bool.
  torch::Tensor correct;
};

// Cross-entropies of the predictions (doc/pretraining.md 5). Only a slice of
// the [M, V] logits exists at a time, [rows, columns]: the losses need only the
// running maximum and sum of exponentials of each row over the slices, and the
// backward pass recomputes each slice, but for the first, which are kept,
//
//   d logits = (softmax(logits) - onehot(label)) d loss
//
// and with it all of the rows of the table's gradient that belong to its
// columns, so that only the gradient itself is [V, E].
//
// Memory at a time, beside inputs and gradients: `slice_bytes` once, in
// bfloat16 once and a half, and at the end of a slice its [columns, E]. For the
// backward pass it keeps the inputs, M numbers, and `kept_bytes`.
//
// Differentiable in hidden, table and bias, once (c10::Error). Throws
// c10::Error for other shapes and, on the CPU, for labels out of range.
MlmLosses ComputeMlmLosses(const MlmDecoderInput& input,
                           const MlmDecoderOptions& options = {});

// The definition, with all logits at once; of any dtype, differentiable twice.
MlmLosses ComputeMlmLossesReference(const MlmDecoderInput& input);

}  // namespace etc

#endif  // ETC_TASKS_PRETRAIN_HEADS_MLM_LOSS_H_
