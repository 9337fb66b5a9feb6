// One layer of attention over two documents of different lengths in one batch,
// and the scores that it carries to the next layer.
//
// Prints:
//   output [2, 300, 64]
//   carried l2l scores [2, 4, 300, 41]
//   changed by the padding: 0
#include <iostream>

#include "realetc.h"

int main() {
  etc::GlobalLocalAttention attention(
      etc::GlobalLocalAttentionOptions{.long_hidden_size = 64,
                                       .global_hidden_size = 64,
                                       .num_heads = 4,
                                       .head_size = 16,
                                       .local_radius = 20});
  attention->eval();

  // Padding masks, 1 for a token: document 1 has 200 of 300 long tokens, and 5
  // of 8 global ones. Padding may be on any side, and between tokens.
  torch::Tensor long_mask = torch::ones({2, 300}, torch::kInt64);
  torch::Tensor global_mask = torch::ones({2, 8}, torch::kInt64);
  long_mask[1].slice(0, 200).zero_();
  global_mask[1].slice(0, 5).zero_();
  const auto inputs =
      etc::AttentionInputs::Padded(long_mask, global_mask, /*max_distance=*/12);

  const etc::CarriedScores carried{
      .residual = {.mode = etc::ResidualAttention::kSum}};
  torch::Tensor long_input = torch::randn({2, 300, 64});
  const torch::Tensor global_input = torch::randn({2, 8, 64});
  const auto layer = attention(long_input, global_input, inputs, carried);
  std::cout << "output " << layer.long_output.sizes() << "\n"
            << "carried l2l scores " << layer.scores.l2l->sizes() << "\n";

  long_input[1].slice(0, 200).fill_(1000);  // The padding of document 1.
  const auto again = attention(long_input, global_input, inputs, carried);
  const torch::Tensor change = again.long_output - layer.long_output;
  std::cout << "changed by the padding: "
            << change[1].slice(0, 0, 200).abs().max().item<float>() << "\n";
}
