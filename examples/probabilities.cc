// Looks inside an encoder: the attention probabilities of one head, as four
// blocks, and the residual scores that a layer adds to those below it.
//
// Prints:
//   l2l [1, 1, 100, 33], l2g [1, 1, 100, 4]
//   g2g [1, 1, 4, 4], g2l [1, 1, 4, 100]
//   probabilities of a long token sum to 1
//   hidden states of 4 layers: 5
//   new scores g2g [1, 1, 4, 4]
#include <cmath>
#include <iostream>

#include "realetc.h"

int main() {
  etc::EtcConfig config{.vocab_size = 200, .hidden_size = 32};
  config.num_hidden_layers = 4;
  config.num_attention_heads = 4;
  config.local_radius = 16;
  config.intermediate_size = 64;
  config.residual_attention = "sum";
  etc::EtcModel encoder(config);
  encoder->eval();

  etc::EtcInput input{.token_ids = torch::ones({1, 100}, torch::kInt64),
                      .global_token_ids = torch::ones({1, 4}, torch::kInt64)};
  input.inspect = {.hidden_states = true,
                   .probabilities_of = {2},  // layer 2, from 0
                   .scores_of = {2},
                   .heads = {1}};
  const etc::EtcOutput output = encoder(input);
  const etc::AttentionView& layer = output.inspected.layers.at(2);
  const etc::FourBlocks& p = layer.probabilities;
  std::cout << "l2l " << p.l2l.sizes() << ", l2g " << p.l2g.sizes() << "\n"
            << "g2g " << p.g2g.sizes() << ", g2l " << p.g2l.sizes() << "\n";

  const float sum = (p.l2l.sum(-1) + p.l2g.sum(-1))[0][0][50].item<float>();
  std::cout << "probabilities of a long token sum to "
            << std::round(sum * 1e5) / 1e5 << "\n"
            << "hidden states of 4 layers: "
            << output.inspected.long_states.size() << "\n"
            << "new scores g2g " << layer.new_scores.g2g.sizes() << "\n";
}
