#include "attention/sparse_attention.h"

#include <c10/util/Exception.h>

namespace etc {
AttentionImplementation FastestAttention(int64_t queries,
                                         int64_t local_radius) {
  // Up to here the window leaves out so little that blocks cost more than
  // they save (measured, bench/attention_bench).
  return queries <= 3 * local_radius ? AttentionImplementation::kReference
                                     : AttentionImplementation::kBlocked;
}

SparseAttentionOutput SparseAttention(const SparseAttentionInput& input,
                                      AttentionImplementation implementation) {
  TORCH_CHECK(input.attention != nullptr, "attention inputs are missing");
  TORCH_CHECK(input.query.dim() == 4,
              "query should be [batch, heads, length, head_dim], but is ",
              input.query.sizes());
  if (implementation == AttentionImplementation::kAuto) {
    implementation = FastestAttention(input.query.size(2), input.local_radius);
  }
  switch (implementation) {
    case AttentionImplementation::kReference:
      return ReferenceSparseAttention(input);
    case AttentionImplementation::kBlocked:
      return BlockedSparseAttention(input);
    case AttentionImplementation::kAuto:
      break;
  }
  TORCH_CHECK(false, "no such attention implementation");
}

}  // namespace etc
