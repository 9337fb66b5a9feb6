// A program outside of this project: one layer of attention.
// doc/library.md shows it; the test next to it checks that.
#include <torch/types.h>

#include <iostream>

#include "attention/global_local_attention.h"
#include "attention/pattern.h"

int main() {
  // 2 documents of 300 long and 8 global tokens.
  etc::GlobalLocalAttention attention(
      etc::GlobalLocalAttentionOptions{.long_hidden_size = 64,
                                       .global_hidden_size = 64,
                                       .num_heads = 4,
                                       .head_size = 16,
                                       .local_radius = 20});
  const etc::AttentionInputs inputs({etc::UnrestrictedPattern(300, 8, 20, 12),
                                     etc::UnrestrictedPattern(200, 5, 20, 12)});
  const auto layer =
      attention(torch::randn({2, 300, 64}), torch::randn({2, 8, 64}), inputs,
                etc::CarriedScores{.mode = etc::ResidualAttention::kSum});
  std::cout << layer.long_output.sizes() << " and scores for the next layer, "
            << "l2l " << layer.scores.l2l.sizes() << "\n";
}
