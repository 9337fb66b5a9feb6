#ifndef ETC_ETC_NN_FEED_FORWARD_H_
#define ETC_ETC_NN_FEED_FORWARD_H_

#include <torch/types.h>

#include <cstdint>

#include "base/linear.h"
#include "etc/nn/activation.h"

namespace etc {

// The products of a feed-forward block (doc/model.md 4.1), without the bias of
// the second, which etc/nn/residual_norm.h adds:
//
//   dropout(activation(input intermediate_weight^T + intermediate_bias))
//       output_weight^T
//
// H hidden, F intermediate size.
struct FeedForwardInput {
  torch::Tensor input;              // [..., H]
  LinearInput intermediate_weight;  // [F, H]
  torch::Tensor intermediate_bias;  // [F]
  // [H, F]; its operand is of the same dtype, or there is none of either.
  LinearInput output_weight;
  Activation activation = Activation::kGelu;
  // Probability of dropping an activation, in [0, 1). 0 outside of training.
  double dropout = 0.0;
};

// Rows that FeedForward computes at a time without gradients and dropout.
inline constexpr int64_t kFeedForwardSliceRows = 4096;

// Returns [..., H].
//
// Gelu of either form between products of operands (base/linear.h) goes through
// etc/nn/kernels/bias_gelu.h, one pass between them, forward and backward; it
// keeps the input and the activation's input, 4 F bytes for each token, and
// computes the activation again in backward. With products in bfloat16 the pass
// is made while a product's tiles are in a cache, and what is kept is rounded,
// 2 F bytes: the gradients are those of the activation's rounded input. Other
// activations, and dropout, go through LibTorch's operations and ResidualSum
// (residual_norm.h). Without gradients (GradMode) and dropout many rows are
// computed in slices: what lies between the products then takes memory that
// does not grow with the number of tokens. Differentiable in input, weights and
// bias; once only (c10::Error) where there are operands. Throws c10::Error if
// shapes disagree.
torch::Tensor FeedForward(const FeedForwardInput& input);

// The definition, in LibTorch's operations; of any dtype, on any device, and
// differentiable twice. Takes no notice of operands.
torch::Tensor FeedForwardReference(const FeedForwardInput& input);

// The pass between the products, and back, of float32 tensors on the CPU, all
// contiguous.
//
//   activation:                      kGelu or kGeluErf
//   input, output, output_gradient:  [rows, F]
//   bias:                            [F]
torch::Tensor BiasGelu(Activation activation, const torch::Tensor& input,
                       const torch::Tensor& bias);
struct BiasGeluGradients {
  torch::Tensor output;          // once more
  torch::Tensor input_gradient;  // `output_gradient`, overwritten
  torch::Tensor bias_gradient;   // [F]
};
BiasGeluGradients BiasGeluBackward_(Activation activation,
                                    const torch::Tensor& input,
                                    const torch::Tensor& bias,
                                    torch::Tensor output_gradient);

}  // namespace etc

#endif  // ETC_ETC_NN_FEED_FORWARD_H_
