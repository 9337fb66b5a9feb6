// A program outside of this project: a whole encoder.
// README.md shows it; the test next to it checks that.
#include <torch/types.h>

#include <iostream>

#include "etc/model.h"

int main() {
  etc::EtcConfig config = *etc::EtcConfigPreset("base");
  config.num_hidden_layers = 2;
  etc::EtcModel model(config);
  model->set_residual_attention(etc::ResidualAttention::kSum);
  const etc::EtcOutput output = model(
      etc::EtcInput{.token_ids = torch::ones({1, 100}, torch::kInt64),
                    .global_token_ids = torch::ones({1, 4}, torch::kInt64)});
  std::cout << output.long_output.sizes() << "\n";  // [1, 100, 768]
}
