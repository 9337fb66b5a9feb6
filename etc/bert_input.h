#ifndef ETC_ETC_BERT_INPUT_H_
#define ETC_ETC_BERT_INPUT_H_

#include <torch/types.h>

#include "etc/model.h"

namespace etc {

// What BERT reads, for an EtcModel that is BERT (see weights/source_config.h):
// every token is global, none is long, and position i has row i of the table.
// BERT's output is then EtcOutput::global_output, and RealFormer's that of the
// same model with residual attention (doc/model.md 10.1).
//
//   token_ids:      [B, T] int64
//   token_type_ids: [B, T] int64; undefined: all 0
//   attention_mask: [B, T], 1 for a token and 0 for padding; undefined: all 1.
//                   Padding is seen by nobody, and itself sees the tokens.
//
// Throws c10::Error if shapes disagree.
EtcInput BertInput(const torch::Tensor& token_ids,
                   const torch::Tensor& token_type_ids = {},
                   const torch::Tensor& attention_mask = {});

}  // namespace etc

#endif  // ETC_ETC_BERT_INPUT_H_
