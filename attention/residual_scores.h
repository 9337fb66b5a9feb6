#ifndef ETC_ATTENTION_RESIDUAL_SCORES_H_
#define ETC_ATTENTION_RESIDUAL_SCORES_H_

#include <torch/types.h>

namespace etc {

// How the attention scores of the layers below enter a layer's softmax
// (RealFormer, He et al. 2021; model spec 10). With s_n the scaled score of
// layer n = 0, 1, ... and S_n = s_n + S_{n-1} what is carried to layer n + 1:
//
//   kOff   softmax(s_n)            nothing is carried
//   kSum   softmax(S_n)
//   kMean  softmax(S_n / (n + 1))  the sum is carried, undivided
//
// No mode has parameters, so a checkpoint trained with one loads with another.
enum class ResidualAttention { kOff, kSum, kMean };

// The scores that one layer hands to the next, one tensor for each block, each
// (q . k + q . E[id] + bias[id]) / sqrt(head_dim) summed over the layers so
// far: never masked, never divided. Undefined tensors mean zeros: nothing
// carried yet. Pairs that may not see each other have a score or 0, as the
// implementation likes: no result depends on it.
//
// With B batch, N heads, L long length, G global length and W = 2r + 1:
struct ResidualScores {
  torch::Tensor g2g;  // [B, N, G, G]
  torch::Tensor g2l;  // [B, N, G, L]
  torch::Tensor l2g;  // [B, N, L, G]
  // [B, N, L, W]; column w of row i is key i + w - r. Where that key lies
  // outside of the sequence the value is 0.
  torch::Tensor l2l;
};

}  // namespace etc

#endif  // ETC_ATTENTION_RESIDUAL_SCORES_H_
