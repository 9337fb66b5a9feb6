#ifndef ETC_ETC_BERT_INPUT_H_
#define ETC_ETC_BERT_INPUT_H_

#include <torch/types.h>

#include "etc/model.h"

namespace etc {

// Input of BERT, for an EtcModel that is BERT (see weights/source_config.h):
// every token is global, none is long, and position i has row i of the table.
// BERT's output is then EtcOutput::global_output, and RealFormer's that of the
// same model with residual attention (doc/model.md 10.1).
//
// Visibility is one AttentionPattern for each row, so that the fused kernels
// can be used (attention/sparse_attention.h), and a row costs its own length.
//
//   token_ids:      [B, T] int64 or int32
//   token_type_ids: [B, T] int64 or int32; undefined: all 0
//   attention_mask: [B, T] bool or integers 0 and 1, 0 for padding, which no
//                   token sees; undefined: no padding. (Not a mask that is
//                   added to scores.) Outputs at padding are finite and mean
//                   nothing: behind the last token padding sees nothing, before
//                   it other padding (BERT's own sees the tokens).
//
// Throws c10::Error on tensors of other shapes and dtypes.
EtcInput BertInput(const torch::Tensor& token_ids,
                   const torch::Tensor& token_type_ids = {},
                   const torch::Tensor& attention_mask = {});

// The same for rows of several examples: tokens see those of their own example,
// and each example has positions 0, 1, ... of its own, as if it were alone.
//
//   example_ids: [B, T] int64 or int32 below 2^31, equal within an example; 0
//                for padding, which has position 0
//
// Throws c10::Error also for ids out of range.
EtcInput PackedBertInput(const torch::Tensor& token_ids,
                         const torch::Tensor& token_type_ids,
                         const torch::Tensor& example_ids);

}  // namespace etc

#endif  // ETC_ETC_BERT_INPUT_H_
