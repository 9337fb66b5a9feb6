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
  // Copies of both weights for products in bfloat16 (attention/linear.h);
  // undefined: products in the dtype of the input.
  torch::Tensor rounded_intermediate_weight;
  torch::Tensor rounded_output_weight;
};

// Returns [..., H].
//
// Gelu in float32 on the CPU goes through etc/kernels/bias_gelu.h, one pass
// between the products, forward and backward; it keeps the input (rounded, if
// the products are in bfloat16) and what the activation is of, 4 F bytes for
// each token, and computes the activation again in backward. Anything else goes
// through LibTorch's operations, with products as wanted. Differentiable in
// input, weights and bias, once: gradients of gradients are refused
// (c10::Error) on the fast path. Throws c10::Error if shapes disagree.
torch::Tensor FeedForward(const FeedForwardInput& input);

// The definition, in LibTorch's operations; of any dtype, on any device, and
// differentiable twice. Takes no notice of rounded weights.
torch::Tensor FeedForwardReference(const FeedForwardInput& input);

// The pass between the products, and back, of float32 tensors on the CPU, all
// contiguous.
//
//   input, output, output_gradient:  [rows, F]
//   bias:                            [F]
//   type:                            of the output: kFloat32 or kBFloat16
torch::Tensor BiasGelu(const torch::Tensor& input, const torch::Tensor& bias,
                       torch::ScalarType type = torch::kFloat32);
struct BiasGeluGradients {
  torch::Tensor output;  // once more
  // [rows, F]; of float32 it is `output_gradient`, overwritten.
  torch::Tensor input_gradient;
  torch::Tensor bias_gradient;  // [F] float32
};
// `type` is that of output and input gradient.
BiasGeluGradients BiasGeluBackward_(const torch::Tensor& input,
                                    const torch::Tensor& bias,
                                    torch::Tensor output_gradient,
                                    torch::ScalarType type = torch::kFloat32);

}  // namespace etc

#endif  // ETC_ETC_FEED_FORWARD_H_
