// Texts through an encoder, for comparisons with other code that computes it
// (python/tests/etc_model_test.py). Reads from the standard input, a line for
// each encoder:
//
//   CHECKPOINT TEXTS OUT
//
// TEXTS has a JSON string on each line, or on each a list of strings, the texts
// of a document. OUT, a safetensors file, gets of EmbedText document.b,
// parts.b, ranges.b [parts, 2], first byte and end of each, and unread.b, the
// pieces and sentences that were cut; with the pooling kMean it has
// mean_document.b and mean_parts.b. Of strings it also has the tokens of the
// batch and its outputs: token_ids, global_token_ids, long_output,
// global_output, and of text b pieces.b [pieces, 3], the id, first byte and end
// of each, and sentences.b, the sentence of each token.
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
#include "tasks/inference/text_embedding.h"
#include "tasks/inference/text_encoder.h"

namespace etc {
namespace {

using Document = std::vector<std::string>;

// Sets `*are_texts` if none is a list.
std::vector<Document> ReadDocuments(const std::string& path, bool* are_texts) {
  std::vector<Document> documents;
  std::ifstream file(path);
  *are_texts = true;
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line);
    *are_texts = *are_texts && json.is_string();
    documents.push_back(json.is_string() ? Document{json.get<std::string>()}
                                         : json.get<Document>());
  }
  return documents;
}

torch::Tensor PiecesOf(const EncodedText& text) {
  std::vector<int64_t> numbers;
  for (const Token& piece : text.pieces) {
    numbers.insert(numbers.end(), {piece.id, piece.begin, piece.end});
  }
  return torch::tensor(numbers, torch::kInt64).view({-1, 3});
}

absl::Status AddVectors(const LoadedEncoder& loaded, const Document& document,
                        size_t number, NamedTensors* tensors) {
  ETC_ASSIGN_OR_RETURN(const EmbeddedText vectors, EmbedText(loaded, document));
  ETC_ASSIGN_OR_RETURN(
      const EmbeddedText means,
      EmbedText(loaded, document, {.pooling = Pooling::kMean}));
  std::vector<int64_t> ranges;
  for (const auto& [begin, end] : vectors.ranges) {
    ranges.insert(ranges.end(), {begin, end});
  }
  tensors->insert(
      {{absl::StrCat("document.", number), vectors.document},
       {absl::StrCat("parts.", number), vectors.parts},
       {absl::StrCat("mean_document.", number), means.document},
       {absl::StrCat("mean_parts.", number), means.parts},
       {absl::StrCat("ranges.", number),
        torch::tensor(ranges, torch::kInt64).view({-1, 2})},
       {absl::StrCat("unread.", number),
        torch::tensor({vectors.cut_pieces, vectors.dropped_sentences})}});
  return absl::OkStatus();
}

absl::Status AddBatch(const LoadedEncoder& loaded,
                      const std::vector<Document>& documents,
                      NamedTensors* tensors) {
  std::vector<std::string> texts;
  for (const Document& document : documents) {
    texts.push_back(document.front());
  }
  ETC_ASSIGN_OR_RETURN(const EncodedTexts encoded, EncodeTexts(loaded, texts));
  EtcModel encoder = loaded.encoder;
  const EtcOutput output = encoder(encoded.input);
  *tensors = {{"token_ids", encoded.input.token_ids},
              {"global_token_ids", encoded.input.global_token_ids},
              {"long_output", output.long_output},
              {"global_output", output.global_output}};
  for (size_t b = 0; b < encoded.texts.size(); ++b) {
    const EncodedText& text = encoded.texts[b];
    (*tensors)[absl::StrCat("pieces.", b)] = PiecesOf(text);
    (*tensors)[absl::StrCat("sentences.", b)] =
        torch::tensor(text.sentences, torch::kInt32);
  }
  return absl::OkStatus();
}

absl::Status Run(const std::string& checkpoint, const std::string& path,
                 const std::string& out) {
  ETC_ASSIGN_OR_RETURN(const LoadedEncoder loaded, LoadEncoder(checkpoint));
  bool are_texts = false;
  const std::vector<Document> documents = ReadDocuments(path, &are_texts);
  const c10::InferenceMode no_gradients;
  NamedTensors tensors;
  if (are_texts) {
    ETC_RETURN_IF_ERROR(AddBatch(loaded, documents, &tensors));
  }
  for (size_t b = 0; b < documents.size(); ++b) {
    ETC_RETURN_IF_ERROR(AddVectors(loaded, documents[b], b, &tensors));
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
