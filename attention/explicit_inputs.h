#ifndef ETC_ATTENTION_EXPLICIT_INPUTS_H_
#define ETC_ATTENTION_EXPLICIT_INPUTS_H_

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "attention/pattern.h"

namespace etc {

// The masks and relative ids of a batch as tensors, in the official layout
// (doc/model.md 6): what a pattern says, in full. Needs O(L (W + G))
// memory. B batch, L long length, G global length, W = 2 * local_radius + 1;
// column w of row i of an l2l tensor is about key i + w - local_radius.
//
// A mask is bool, true where attention is allowed; undefined: everywhere. Ids
// are int64; undefined: no relative term. Those of one softmax (l2l and l2g,
// g2g and g2l) are there both or not at all.
struct ExplicitInputs {
  torch::Tensor l2l_mask, l2l_ids;  // [B, L, W]
  torch::Tensor l2g_mask, l2g_ids;  // [B, L, G]
  torch::Tensor g2g_mask, g2g_ids;  // [B, G, G]
  torch::Tensor g2l_mask, g2l_ids;  // [B, G, L]
};

// Makes tensors of one pattern for each example of a batch of long length `L`
// and global length `G`; both at least those of every pattern. All masks are
// defined, and ids unless the distance is 0. Patterns agree in radius and
// distance. On the CPU. Throws c10::Error otherwise.
ExplicitInputs Materialize(const std::vector<AttentionPattern>& patterns,
                           int64_t long_length, int64_t global_length);

}  // namespace etc

#endif  // ETC_ATTENTION_EXPLICIT_INPUTS_H_
