// Texts through a trained model, and how near to the first one the others are.
// The directory may have weights of any origin: HuggingFace's or Google's BERT,
// official ETC, a run of `realetc train`.
//
// Prints:
//   The court ruled for the owner. 1
//   The court ruled for the tenant.
//   pieces of a text that were cut: 0
#include <c10/core/InferenceMode.h>

#include <iostream>

#include "realetc.h"

int main(int argc, char** argv) {
  const std::vector<std::string> texts = {"The court ruled for the owner.",
                                          "The court ruled for the tenant.",
                                          "Rain is expected on Sunday."};
  const auto loaded = etc::LoadEncoder(argc > 1 ? argv[1] : ".");
  const auto encoded =
      loaded.ok() ? etc::EncodeTexts(*loaded, texts) : loaded.status();
  if (!encoded.ok()) {
    std::cerr << encoded.status() << "\n";
    return 1;
  }
  const c10::InferenceMode no_gradients;
  etc::EtcModel encoder = loaded->encoder;
  // The first global token of each text, which sees all of it: [B, H].
  const torch::Tensor vectors =
      encoder(encoded->input).global_output.select(1, 0);
  const torch::Tensor similarities =
      torch::cosine_similarity(vectors, vectors.narrow(0, 0, 1), /*dim=*/1);
  for (size_t i = 0; i < texts.size(); ++i) {
    std::cout << texts[i] << " "
              << similarities[static_cast<int64_t>(i)].item<float>() << "\n";
  }
  std::cout << "pieces of a text that were cut: "
            << encoded->texts[0].cut_pieces << "\n";
}
