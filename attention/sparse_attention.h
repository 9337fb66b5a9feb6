#ifndef ETC_ATTENTION_SPARSE_ATTENTION_H_
#define ETC_ATTENTION_SPARSE_ATTENTION_H_

#include <torch/types.h>

#include <cstdint>
#include <string>

#include "attention/attention_inputs.h"
#include "attention/attention_operands.h"
#include "attention/residual_scores.h"
#include "attention/softmax_pattern.h"
#include "base/linear.h"

namespace etc {

// The backend that computes a softmax. All agree; see attention/backends.
//   kReference  dense tensor operations, O(L^2): the definition; on any device
//               and in any floating dtype; with operands of 16 bits scores,
//               softmax and sums are float32
//   kBlocked    the same block by block, O(L)
//   kKernel     fused kernels, O(L), patterns as runs only: by SIMD on the CPU,
//               in float32 or with rounded products (precision, below); on CUDA
//               devices in float32 or bfloat16 (UnfusedReason)
//   kAuto       the fastest that supports the inputs
//
// kBlocked and kKernel are fused: they compute their gradients themselves, so
// that residual scores may lie in one buffer (ScoreStorage), but there are no
// gradients of gradients.
//
// Each head of an example costs kKernel a microsecond at least: very many of a
// few tokens (1024 examples, 8 heads, 2 tokens) take 5 times as long as plain
// operations; from about 16 tokens on they are as fast.
//
// On the CPU a forward pass of kKernel takes O(1) memory beside what goes in
// and out. A backward pass divides all heads into about 64 parts, each with
// gradient rows of its own: without a window those of the queries that see its
// keys (137 MB for one head of 64 features in which 16,384 tokens see each
// other); with one those of the other keys and of own keys around the part.
enum class AttentionImplementation { kAuto, kReference, kBlocked, kKernel };

// One softmax of one layer over two blocks of keys; shapes are stated where
// AttentionOperands and ScorePair are declared.
struct SparseAttentionInput {
  AttentionOperands operands = {};
  // Visibility and relative ids: AttentionInputs::Softmax for the layers of
  // ETC.
  SoftmaxPattern pattern = {};

  ResidualOptions residual = {};
  // Scores of the layer below, in which each query saw at least the keys that
  // it sees here (ResidualScores), with the number of layers in them;
  // undefined: zeros, of none.
  ResidualPair previous = {};
  // Gates of kGate: needed where there are previous scores, else not read.
  ResidualGates gates = {};
  // With kBfloat16 kernels of the CPU round both factors of every product,
  // forward and backward, to bfloat16 where the CPU has such products
  // (AVX512-BF16 or AMX): operands, weights, and gradients of context and
  // scores. Sums, scores and exponentials are float32, what is carried too. So
  // they do for operands of bfloat16. Other backends take no notice.
  LinearPrecision precision = LinearPrecision::kFloat32;
  // Probability of dropping an attention weight, in [0, 1); 0 outside of
  // training.
  double dropout = 0.0;
  // Number of the layer's heads before these, where the operands are those of
  // some of its heads: so that the same weights are dropped as if it were
  // computed at once.
  int64_t first_head = 0;
};

// Context and scores are both differentiable: the next layer sends a gradient
// into the scores too. Scores of pairs that may not see each other are
// unspecified, but finite (the kernels do not compute them and carry 0); they
// affect no result, since no query of the next layer sees other keys.
struct SparseAttentionOutput {
  torch::Tensor context = {};  // [B, N, T, e], dtype of the query
  // Scores for the layer above, with one layer more in them; undefined with
  // kOff.
  ResidualPair scores = {};
};

// Computes, for each query over its own and other keys,
//
//   s_n     = (q . k + q . E[id] + bias[id]) / sqrt(d)
//   context = dropout(softmax over visible keys of the logits) . v
//
// where the logits and the scores carried on follow from s_n and the previous
// scores as attention/residual_attention.h says. A query that sees no key has
// context 0. The weights that are dropped follow from one number drawn from
// LibTorch's CPU generator: the same ones by every backend and on every device.
//
// Throws c10::Error if shapes or dtypes disagree, for inputs that the backend
// does not support, for previous scores of a layer in which a query did not see
// a key that it sees here, if their buffer no longer holds them, and from the
// backward pass of a fused backend if that should be differentiable.
SparseAttentionOutput SparseAttention(
    const SparseAttentionInput& input,
    AttentionImplementation implementation = AttentionImplementation::kAuto);

// Returns the reason why kAuto computes the attention of a model on `device`,
// of heads with `head_size` features, by tensor operations: the CUDA kernels
// are not there, or not for that device or that size. Empty if by fused
// kernels, as on the CPU, given float32 or bfloat16 and patterns as runs.
std::string UnfusedReason(const torch::Device& device, int64_t head_size);

// Returns the reason why kKernel does not support this, for people; empty: it
// does, and is what kAuto picks. Computes nothing. Throws c10::Error if shapes
// disagree.
std::string KernelUnsupportedReason(const SparseAttentionInput& input);

}  // namespace etc

#endif  // ETC_ATTENTION_SPARSE_ATTENTION_H_
