#ifndef ETC_TASKS_INFERENCE_TEXT_EMBEDDING_H_
#define ETC_TASKS_INFERENCE_TEXT_EMBEDDING_H_

#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tasks/inference/text_encoder.h"
#include "tasks/text/byte_range.h"

namespace etc {

// Vectors of a document and of its parts.
//
//   const auto loaded = etc::LoadEncoder("checkpoints/etc_base");
//   const auto vectors = etc::EmbedText(*loaded, {"A whole book. ..."});

// Choices for EmbedText.
struct EmbedOptions {
  // Absent: LoadedEncoder::pooling.
  std::optional<Pooling> pooling = std::nullopt;
  // Name of the document in messages.
  std::string name = "text 0";
};

// Vectors of a document, float32 on the CPU.
struct EmbeddedText {
  torch::Tensor document = {};  // [H]
  torch::Tensor parts = {};     // [P, H]
  // [P]: bytes of each part in the texts joined by line feeds. ETC's parts are
  // sentences, in one pass over the document; BERT's are chunks of
  // LoadedEncoder::max_global_length - 2 pieces, which cover the document.
  std::vector<ByteRange> ranges = {};
  // ETC's pieces at the end of the document that had no room (max_long_length),
  // and sentences before them without a global token (max_global_length), which
  // have no vector.
  int64_t cut_pieces = 0;
  int64_t dropped_sentences = 0;
};

// The vectors of a document, of which each text begins a sentence, as in
// EncodeDocument. Runs without gradients or dropout.
//   kInvalidArgument  as EncodeDocument; no pooling is named, and that of the
//                     weights is neither
absl::StatusOr<EmbeddedText> EmbedText(const LoadedEncoder& loaded,
                                       const std::vector<std::string>& texts,
                                       const EmbedOptions& options = {});

// Passes of the model that EmbedText makes over a document of so many pieces:
// one by ETC, and by BERT one for every 8 chunks.
int64_t EmbeddingPasses(const LoadedEncoder& loaded, int64_t pieces);

}  // namespace etc

#endif  // ETC_TASKS_INFERENCE_TEXT_EMBEDDING_H_
