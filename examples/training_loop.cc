// A training loop of one's own: a small encoder learns whether a text of 128
// tokens has the token 7 in it.
//
// Prints:
//   step 0, loss 0....
//   step 120, loss 0.0
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>

#include <iostream>

#include "realetc.h"

int main() {
  etc::KeepFreedMemory();
  torch::manual_seed(1);
  etc::EtcConfig config{.vocab_size = 200, .hidden_size = 32};
  config.num_hidden_layers = 2;
  config.num_attention_heads = 4;
  config.local_radius = 16;
  config.intermediate_size = 64;
  config.residual_attention = "sum";
  etc::EtcModel encoder(config);
  torch::nn::Linear classifier(config.hidden_size, 2);
  std::vector<torch::Tensor> parameters = encoder->parameters();
  for (const torch::Tensor& parameter : classifier->parameters()) {
    parameters.push_back(parameter);
  }
  torch::optim::AdamW optimizer(parameters, torch::optim::AdamWOptions(3e-3));

  for (int step = 0; step <= 120; ++step) {
    const torch::Tensor texts = torch::randint(200, {32, 128}, torch::kInt64);
    const torch::Tensor labels = (texts == 7).any(1).to(torch::kInt64);
    // The global token sees the whole text.
    const etc::EtcOutput encoded = encoder(
        etc::EtcInput{.token_ids = texts,
                      .global_token_ids = torch::ones({32, 1}, torch::kInt64)});
    const torch::Tensor logits =  // [32, 2]
        classifier(encoded.global_output.select(1, 0));
    const torch::Tensor loss = torch::cross_entropy_loss(logits, labels);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    if (step % 40 == 0) {
      std::cout << "step " << step << ", loss " << loss.item<float>() << "\n";
    }
  }
}
