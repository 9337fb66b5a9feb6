#include "attention/sparse_attention.h"

#include <c10/util/Exception.h>

namespace etc {
namespace {

// What kAuto stands for.
AttentionImplementation Fastest(const SparseAttentionInput& input) {
  // The kernels are several times as fast as the others at every size, from
  // 128 long tokens on (measured, bench/attention_bench). They know float32 on
  // the CPU and patterns, no explicit tensors.
  if (UnsupportedReason(input).empty()) {
    return AttentionImplementation::kKernel;
  }
  // Up to here the window leaves out so little that blocks cost more than
  // they save (measured, bench/attention_bench).
  return input.query.size(2) <= 3 * input.local_radius
             ? AttentionImplementation::kReference
             : AttentionImplementation::kBlocked;
}

}  // namespace

SparseAttentionOutput SparseAttention(const SparseAttentionInput& input,
                                      AttentionImplementation implementation) {
  TORCH_CHECK(input.attention != nullptr, "attention inputs are missing");
  TORCH_CHECK(input.query.dim() == 4,
              "query should be [batch, heads, length, head_dim], but is ",
              input.query.sizes());
  if (implementation == AttentionImplementation::kAuto) {
    implementation = Fastest(input);
  }
  switch (implementation) {
    case AttentionImplementation::kReference:
      return ReferenceSparseAttention(input);
    case AttentionImplementation::kBlocked:
      return BlockedSparseAttention(input);
    case AttentionImplementation::kKernel:
      return KernelSparseAttention(input);
    case AttentionImplementation::kAuto:
      break;
  }
  TORCH_CHECK(false, "no such attention implementation");
}

}  // namespace etc
