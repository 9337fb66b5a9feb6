#ifndef ETC_ATTENTION_SPARSE_ATTENTION_H_
#define ETC_ATTENTION_SPARSE_ATTENTION_H_

#include <torch/types.h>

#include <cstdint>
#include <string>

#include "attention/attention_inputs.h"
#include "attention/backends/reference/dense_attention.h"
#include "attention/residual_scores.h"

namespace etc {

// Who computes a softmax. All agree; see the files of these names.
//   kReference  dense tensor operations, O(L^2): the definition
//   kBlocked    tensor operations block by block, O(L)
//   kKernel     fused SIMD kernels, O(L), of O(1) memory beside what goes in
//               and out: float32 on the CPU (or bfloat16, computed with in
//               float32), patterns only, no gradients of gradients
//   kAuto       the fastest that serves the inputs at hand
enum class AttentionImplementation { kAuto, kReference, kBlocked, kKernel };

// One of the two joint softmaxes of a layer (model spec 3.5):
//   kLong    long queries over [l2l ; l2g]
//   kGlobal  global queries over [g2g ; g2l]
enum class QuerySide { kLong, kGlobal };

// B batch, N heads, L long length, G global length, d head_dim. "Own" keys are
// those of the queries' own stream (l2l, g2g), "other" ones those of the other
// stream (l2g, g2l).
struct SparseAttentionInput {
  QuerySide side = QuerySide::kLong;
  torch::Tensor query;  // [B, N, L or G, d]
  torch::Tensor own_key, own_value;
  torch::Tensor other_key, other_value;
  RelativeTable relative;
  // Masks and ids.
  const AttentionInputs* attention = nullptr;
  int64_t local_radius = 84;

  ResidualAttention residual = ResidualAttention::kOff;
  // Layers below this one.
  int64_t layer = 0;
  // From the layer below; undefined: zeros. Own: l2l [B, N, L, 2r + 1] or g2g
  // [B, N, G, G]; other: l2g [B, N, L, G] or g2l [B, N, G, L].
  torch::Tensor own_previous, other_previous;
  ScoreStorage storage = ScoreStorage::kStore;
  // The buffer of the previous scores, if the layer below gave one.
  LiveScores live;
  // Probability of dropping an attention weight; 0 outside of training.
  double dropout = 0.0;
  // Instead of `dropout`, for the reference alone: what weights are multiplied
  // by (DenseAttentionInput), laid out as scores. Both or neither.
  torch::Tensor own_dropout_factors, other_dropout_factors;
};

// Scores of pairs that may not see each other are whatever the implementation
// finds convenient, but finite: the kernels do not compute them and carry 0.
// They reach no result, since masks are the same in all layers.
//
// Context and carried scores are both differentiable: the next layer sends a
// gradient into the scores too.
struct SparseAttentionOutput {
  torch::Tensor context;  // [B, N, L or G, d]
  // For the layer above, laid out as the previous ones; undefined with kOff.
  torch::Tensor own_scores, other_scores;
  LiveScores live;
};

// The door to all implementations. Computes, for each query, the definition in
// dense_attention.h over its own and other keys. Throws c10::Error if shapes
// disagree.
SparseAttentionOutput SparseAttention(
    const SparseAttentionInput& input,
    AttentionImplementation implementation = AttentionImplementation::kAuto);

// The same, each by itself.
SparseAttentionOutput ReferenceSparseAttention(
    const SparseAttentionInput& input);

struct BlockedSparseAttentionOptions {
  // Long queries that are computed together; 0: DefaultBlockLength.
  int64_t block_length = 0;
};
int64_t DefaultBlockLength(int64_t local_radius);
SparseAttentionOutput BlockedSparseAttention(
    const SparseAttentionInput& input,
    const BlockedSparseAttentionOptions& options = {});

// The kernels. Which weights are dropped follows from one number drawn from
// LibTorch's CPU generator (DrawKernelDropoutSeed), in which forward and
// backward pass agree. Throws c10::Error also for inputs that the kernels do
// not serve, and from the backward pass if that should be differentiable.
SparseAttentionOutput KernelSparseAttention(const SparseAttentionInput& input);

// Why the kernels do not serve these inputs; empty if they do.
std::string UnsupportedReason(const SparseAttentionInput& input);

// The dropout factors of KernelSparseAttention, for the reference.
uint64_t DrawKernelDropoutSeed();
void MaterializeKernelDropout(uint64_t seed, SparseAttentionInput* input);

}  // namespace etc

#endif  // ETC_ATTENTION_SPARSE_ATTENTION_H_
