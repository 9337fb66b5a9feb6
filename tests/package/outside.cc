// A program outside of this project: attention alone, then a whole encoder.
// README.md shows it; the test next to it checks that.
#include <torch/types.h>

#include <iostream>

#include "attention/global_local_attention.h"
#include "attention/pattern.h"
#include "etc/model.h"

int main() {
  // One layer: 2 documents of 300 long and 8 global tokens.
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
  std::cout << layer.long_output.sizes() << " and scores for the layer above, "
            << "l2l " << layer.scores.l2l.sizes() << "\n";

  // A whole encoder. Residual scores can be switched on and off at any time.
  // Without patterns an input is one document: each long token sees its window
  // and all global tokens, these see everything, with relative positions.
  etc::EtcConfig config = *etc::EtcConfigPreset("base");
  config.num_hidden_layers = 2;
  etc::EtcModel model(config);
  model->set_residual_attention(etc::ResidualAttention::kMean);
  const etc::EtcOutput output = model(
      etc::EtcInput{.token_ids = torch::ones({1, 100}, torch::kInt64),
                    .global_token_ids = torch::ones({1, 4}, torch::kInt64)});
  std::cout << output.long_output.sizes() << "\n";
}
