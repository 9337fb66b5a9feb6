#ifndef ETC_ETC_FEED_FORWARD_H_
#define ETC_ETC_FEED_FORWARD_H_

#include <torch/types.h>

#include "etc/activation.h"

namespace etc {

// The products of a feed-forward block (model spec 4.1), without the bias of
// the second, which etc/residual_norm.h adds:
//
//   activation(input intermediate_weight^T + intermediate_bias) output_weight^T
//
// H hidden, F intermediate size.
struct FeedForwardInput {
  torch::Tensor input;                // [..., H]
  torch::Tensor intermediate_weight;  // [F, H]
  torch::Tensor intermediate_bias;    // [F]
  torch::Tensor output_weight;        // [H, F]
  Activation activation = Activation::kGelu;
};

// Returns [..., H].
//
// Gelu in float32 on the CPU goes through etc/kernels/bias_gelu.h, one pass
// between the products, forward and backward; it keeps the input and what the
// activation is of, 4 F bytes for each token, and computes the activation again
// in backward. Anything else is FeedForwardReference. Differentiable in all
// tensors, once: gradients of gradients are refused (c10::Error) on the fast
// path. Throws c10::Error if shapes disagree.
torch::Tensor FeedForward(const FeedForwardInput& input);

// The definition, in LibTorch's operations; of any dtype, on any device, and
// differentiable twice.
torch::Tensor FeedForwardReference(const FeedForwardInput& input);

// The pass between the products, and back, of float32 tensors on the CPU, all
// contiguous.
//
//   input, output, output_gradient:  [rows, F]
//   bias:                            [F]
torch::Tensor BiasGelu(const torch::Tensor& input, const torch::Tensor& bias);
struct BiasGeluGradients {
  torch::Tensor output;          // once more
  torch::Tensor input_gradient;  // [rows, F]: `output_gradient`, overwritten
  torch::Tensor bias_gradient;   // [F]
};
BiasGeluGradients BiasGeluBackward_(const torch::Tensor& input,
                                    const torch::Tensor& bias,
                                    torch::Tensor output_gradient);

}  // namespace etc

#endif  // ETC_ETC_FEED_FORWARD_H_
