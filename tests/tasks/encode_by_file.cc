// Texts through an encoder, for comparisons with other code that computes it
// (python/tests/etc_model_test.py). Reads from the standard input, a line for
// each encoder:
//
//   CHECKPOINT TEXTS OUT
//
// TEXTS has a JSON string on each line. OUT, a safetensors file, gets the
// tokens of the batch and its outputs: token_ids, global_token_ids,
// long_output, global_output, and of text b pieces.b [pieces, 3], the id, first
// byte and end of each, and sentences.b, the sentence of each token.
#include <c10/core/InferenceMode.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cstdint>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "etc/weights/checkpoint.h"
#include "nlohmann/json.hpp"
#include "tasks/inference/text_encoder.h"

namespace etc {
namespace {

std::vector<std::string> ReadTexts(const std::string& path) {
  std::vector<std::string> texts;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    texts.push_back(nlohmann::json::parse(line).get<std::string>());
  }
  return texts;
}

torch::Tensor PiecesOf(const EncodedText& text) {
  std::vector<int64_t> numbers;
  for (const Token& piece : text.pieces) {
    numbers.insert(numbers.end(), {piece.id, piece.begin, piece.end});
  }
  return torch::tensor(numbers, torch::kInt64).view({-1, 3});
}

absl::Status Run(const std::string& checkpoint, const std::string& texts,
                 const std::string& out) {
  ETC_ASSIGN_OR_RETURN(const LoadedEncoder loaded, LoadEncoder(checkpoint));
  ETC_ASSIGN_OR_RETURN(const EncodedTexts encoded,
                       EncodeTexts(loaded, ReadTexts(texts)));
  const c10::InferenceMode no_gradients;
  EtcModel encoder = loaded.encoder;
  const EtcOutput output = encoder(encoded.input);
  NamedTensors tensors = {{"token_ids", encoded.input.token_ids},
                          {"global_token_ids", encoded.input.global_token_ids},
                          {"long_output", output.long_output},
                          {"global_output", output.global_output}};
  for (size_t b = 0; b < encoded.texts.size(); ++b) {
    const EncodedText& text = encoded.texts[b];
    tensors[absl::StrCat("pieces.", b)] = PiecesOf(text);
    tensors[absl::StrCat("sentences.", b)] =
        torch::tensor(text.sentences, torch::kInt32);
  }
  return WriteTensors(out, tensors, {});
}

absl::Status RunAll(std::istream& lines) {
  std::string checkpoint;
  std::string texts;
  std::string out;
  while (lines >> checkpoint >> texts >> out) {
    ETC_RETURN_IF_ERROR(Run(checkpoint, texts, out));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace etc

int main() {
  const absl::Status status = etc::RunAll(std::cin);
  if (!status.ok()) {
    std::cerr << status << "\n";
    return 1;
  }
  return 0;
}
