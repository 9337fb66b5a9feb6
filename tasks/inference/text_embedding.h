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

// Vectors of a text and of its parts.
//
//   const auto loaded = etc::LoadEncoder("checkpoints/etc_base");
//   const auto vectors = etc::EmbedText(*loaded, "A whole book. ...");

// Choices for EmbedText.
struct EmbedOptions {
  // Absent: LoadedEncoder::pooling.
  std::optional<Pooling> pooling = std::nullopt;
};

// Vectors of a text, float32 on the CPU.
struct EmbeddedText {
  torch::Tensor document = {};  // [H]
  torch::Tensor parts = {};     // [P, H]
  // [P]: bytes of the text of each part. ETC's parts are sentences, in one pass
  // over the text; BERT's are chunks of LoadedEncoder::max_global_length - 2
  // pieces, which cover the text.
  std::vector<ByteRange> ranges = {};
  // ETC's pieces at the end of the text that had no room (max_long_length), and
  // sentences before them without a global token (max_global_length), which
  // have no vector.
  int64_t cut_pieces = 0;
  int64_t dropped_sentences = 0;
};

// The vectors of a text. Runs without gradients or dropout.
//   kInvalidArgument  as EncodeTexts, whose name of the text is "text 0"; no
//                     pooling is named, and that of the weights is neither
absl::StatusOr<EmbeddedText> EmbedText(const LoadedEncoder& loaded,
                                       const std::string& text,
                                       const EmbedOptions& options = {});

}  // namespace etc

#endif  // ETC_TASKS_INFERENCE_TEXT_EMBEDDING_H_
