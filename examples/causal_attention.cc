// Attention of a decoder, and attention by a mask of one's own.
//
// Prints:
//   output [2, 100, 64]
//   changed by later tokens: 0
//   every second key: [2, 100, 64]
#include <iostream>

#include "realetc.h"

int main() {
  // As torch::nn::MultiheadAttention, batch first; relative positions, too.
  etc::MultiHeadAttention attention(
      etc::MultiHeadAttentionOptions{.hidden_size = 64,
                                     .num_heads = 4,
                                     .head_size = 16,
                                     .relative_pos_max_distance = 12});
  attention->eval();
  const etc::KeyPatternOptions sizes{
      .queries = 100, .keys = 100, .batch = 2, .max_distance = 12};
  const etc::SoftmaxPattern causal = etc::CausalPattern(sizes);
  torch::Tensor x = torch::randn({2, 100, 64});
  const etc::CarriedKeyScores first{
      .residual = {.mode = etc::ResidualAttention::kSum}};
  const auto layer = attention(x, x, x, causal, first);
  std::cout << "output " << layer.output.sizes() << "\n";

  x = x.clone();
  x.slice(1, 60).fill_(1000);
  const auto again = attention(x, x, x, causal, first);
  const torch::Tensor change = (again.output - layer.output).slice(1, 0, 60);
  std::cout << "changed by later tokens: " << change.abs().max().item<float>()
            << "\n";

  // Any matrix of bool: [T, S], or one for each example.
  const torch::Tensor mask =
      torch::arange(100).remainder(2).eq(0).expand({100, 100});
  std::cout
      << "every second key: "
      << attention(x, x, x, etc::PatternFromMask(mask, sizes)).output.sizes()
      << "\n";
}
