// A training loop of one's own: a small encoder learns whether a text of 128
// tokens has the token 7 in it. It is saved in the directory `trained`, and
// loaded again.
//
// Prints:
//   step 0, loss 0....
//   step 120, loss 0.0
//   the loaded model gives the same logits
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>

#include <filesystem>
#include <fstream>
#include <iostream>

#include "realetc.h"

namespace {

// The tensors of both, which share their memory.
etc::NamedTensors TensorsOf(const etc::EtcModel& encoder,
                            const torch::nn::Linear& classifier) {
  etc::NamedTensors tensors = etc::ModuleTensors(*encoder, "encoder.");
  tensors.merge(etc::ModuleTensors(*classifier, "classifier."));
  return tensors;
}

absl::Status Save(const std::filesystem::path& directory,
                  const etc::EtcConfig& config,
                  const etc::NamedTensors& tensors) {
  std::filesystem::create_directories(directory);
  std::ofstream file(directory / "etc_config.json");
  file << etc::EtcConfigToJson(config) << std::flush;
  if (!file) {
    return absl::DataLossError("cannot write etc_config.json");
  }
  return etc::WriteTensors(directory / "model.safetensors", tensors,
                           /*metadata=*/{});
}

// Copies what was saved into `tensors`.
absl::Status Load(const std::filesystem::path& directory,
                  const etc::NamedTensors& tensors) {
  const auto reader = etc::TensorReader::Open(directory);
  return reader.ok() ? etc::LoadTensors(*reader, tensors, etc::NameMatch::kBoth)
                           .status()
                     : reader.status();
}

// The global token sees the whole text: [B, 2].
torch::Tensor Logits(etc::EtcModel encoder, torch::nn::Linear classifier,
                     const torch::Tensor& texts) {
  const etc::EtcOutput encoded = encoder(etc::EtcInput{
      .token_ids = texts,
      .global_token_ids = torch::ones({texts.size(0), 1}, torch::kInt64)});
  return classifier(encoded.global_output.select(1, 0));
}

}  // namespace

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
    const torch::Tensor loss =
        torch::cross_entropy_loss(Logits(encoder, classifier, texts), labels);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    if (step % 40 == 0) {
      std::cout << "step " << step << ", loss " << loss.item<float>() << "\n";
    }
  }

  etc::EtcModel loaded(config);
  torch::nn::Linear loaded_classifier(config.hidden_size, 2);
  absl::Status status = Save("trained", config, TensorsOf(encoder, classifier));
  status.Update(Load("trained", TensorsOf(loaded, loaded_classifier)));
  if (!status.ok()) {
    std::cerr << status << "\n";
    return 1;
  }
  encoder->eval();
  loaded->eval();
  const torch::Tensor texts = torch::randint(200, {4, 128}, torch::kInt64);
  if (!Logits(loaded, loaded_classifier, texts)
           .equal(Logits(encoder, classifier, texts))) {
    std::cerr << "the loaded model gives other logits\n";
    return 1;
  }
  std::cout << "the loaded model gives the same logits\n";
}
