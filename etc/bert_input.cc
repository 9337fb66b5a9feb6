#include "etc/bert_input.h"

#include <c10/util/Exception.h>

#include "base/check_shape.h"

namespace etc {

EtcInput BertInput(const torch::Tensor& token_ids,
                   const torch::Tensor& token_type_ids,
                   const torch::Tensor& attention_mask) {
  TORCH_CHECK(token_ids.dim() == 2,
              "token_ids should be [batch, length], but are ",
              token_ids.sizes());
  const int64_t batch = token_ids.size(0);
  const int64_t length = token_ids.size(1);
  EtcInput input{.token_ids = token_ids.new_empty({batch, 0}),
                 .global_token_ids = token_ids};
  if (token_type_ids.defined()) {
    ETC_CHECK_SHAPE(token_type_ids, {batch, length});
    input.global_segment_ids = token_type_ids;
  }
  if (attention_mask.defined()) {
    ETC_CHECK_SHAPE(attention_mask, {batch, length});
    input.attention =
        AttentionInputs({.g2g_mask = attention_mask.to(torch::kBool)
                                         .unsqueeze(1)
                                         .expand({batch, length, length})});
  }
  return input;
}

}  // namespace etc
