#ifndef ETC_ATTENTION_BACKENDS_JOINT_SOFTMAX_H_
#define ETC_ATTENTION_BACKENDS_JOINT_SOFTMAX_H_

#include "attention/backends/reference/dense_attention.h"
#include "attention/sparse_attention.h"

namespace etc {

// What the tensor implementations of SparseAttention share.

// Throws c10::Error unless keys, values and previous scores have the shapes
// that SparseAttentionInput states.
void CheckSparseAttentionShapes(const SparseAttentionInput& input);

// What the carried scores are divided by for the softmax.
double ScoreDivisor(const SparseAttentionInput& input);

// Queries, keys [own ; other], values, relative table, divisor and dropout of
// `input`; masks, ids and previous scores are left to be filled in.
DenseAttentionInput JointKeys(const SparseAttentionInput& input);

// The global side. Its scores are [G, G + L], so that dense operations are
// linear in L already.
SparseAttentionOutput GlobalAttention(const SparseAttentionInput& input);

}  // namespace etc

#endif  // ETC_ATTENTION_BACKENDS_JOINT_SOFTMAX_H_
