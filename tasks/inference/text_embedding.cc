#include "tasks/inference/text_embedding.h"

#include <torch/utils.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "tasks/data/batch.h"
#include "tasks/inputs/text_input.h"
#include "tasks/task/benchmark.h"

namespace etc {
namespace {

// Rows of an output on the CPU, to be kept.
torch::Tensor KeptOf(const torch::Tensor& rows) {
  return rows.to(torch::kCPU, torch::kFloat32).clone().contiguous();
}

// Bytes from the first piece to the last one of `pieces`.
ByteRange RangeOf(absl::Span<const Token> pieces) {
  ByteRange range = {.begin = pieces.front().begin, .end = pieces.front().end};
  for (const Token& piece : pieces) {
    range.begin = std::min(range.begin, piece.begin);
    range.end = std::max(range.end, piece.end);
  }
  return range;
}

EmbeddedText EmbedByEtc(const LoadedEncoder& loaded,
                        const EncodedTexts& encoded, Pooling pooling) {
  const EncodedText& text = encoded.texts.front();
  EmbeddedText vectors = {.cut_pieces = text.cut_pieces,
                          .dropped_sentences = text.dropped_sentences};
  std::vector<int64_t> begins;
  for (size_t i = 0; i < text.sentences.size(); ++i) {
    if (i == 0 || text.sentences[i] != text.sentences[i - 1]) {
      begins.push_back(static_cast<int64_t>(i));
    }
  }
  begins.push_back(static_cast<int64_t>(text.sentences.size()));
  const absl::Span<const Token> pieces = text.pieces;
  for (size_t s = 0; s + 1 < begins.size(); ++s) {
    vectors.ranges.push_back(RangeOf(
        pieces.subspan(static_cast<size_t>(begins[s]),
                       static_cast<size_t>(begins[s + 1] - begins[s]))));
  }
  EtcModel encoder = loaded.encoder;
  const EtcOutput output = encoder(encoded.input);
  if (pooling == Pooling::kFirst) {
    const torch::Tensor globals = KeptOf(output.global_output[0]);
    vectors.document = globals[0].clone();
    vectors.parts =
        globals.slice(0, 1, 1 + static_cast<int64_t>(vectors.ranges.size()));
    return vectors;
  }
  const torch::Tensor states = KeptOf(output.long_output[0]);
  vectors.document = states.mean(0);
  vectors.parts = torch::empty(
      {static_cast<int64_t>(vectors.ranges.size()), states.size(1)});
  // Token 0 is [CLS].
  for (size_t s = 0; s + 1 < begins.size(); ++s) {
    vectors.parts[static_cast<int64_t>(s)] =
        states.slice(0, 1 + begins[s], 1 + begins[s + 1]).mean(0);
  }
  return vectors;
}

constexpr int64_t kChunksAtATime = 8;

// The input of a chunk.
struct ChunkForm {
  InputOptions input;
  TextMarks marks;
  int64_t pieces = 0;
};

ChunkForm ChunkFormOf(const LoadedEncoder& loaded) {
  ChunkForm form = {.input = InputOptionsOf(loaded.config),
                    .marks = {.cls = loaded.special_ids.cls,
                              .separator = loaded.special_ids.separator}};
  form.input.max_long_length = loaded.max_long_length;
  form.input.max_global_length = loaded.max_global_length;
  form.pieces = RoomForPieces(form.input, form.marks, /*two_texts=*/false);
  return form;
}

// The chunks of a text for BERT, a few at a time.
EmbeddedText EmbedByBert(const LoadedEncoder& loaded,
                         const std::vector<Token>& pieces, Pooling pooling) {
  const ChunkForm form = ChunkFormOf(loaded);
  const auto room = static_cast<size_t>(form.pieces);
  const torch::Device device = loaded.encoder->token_embedding_table().device();
  EtcModel encoder = loaded.encoder;
  EmbeddedText vectors;
  std::vector<torch::Tensor> rows;
  std::vector<std::shared_ptr<const Example>> examples;
  torch::Tensor sum;  // of the outputs of all tokens
  int64_t num_tokens = 0;
  const auto run = [&] {
    const std::vector<std::shared_ptr<const Example>> batch =
        std::exchange(examples, {});
    const torch::Tensor outputs =  // [B, T, H]
        KeptOf(encoder(MakeBatch(batch, device).input).global_output);
    for (size_t b = 0; b < batch.size(); ++b) {
      const torch::Tensor states = outputs[static_cast<int64_t>(b)].slice(
          0, 0, batch[b]->global_length());
      sum = sum.defined() ? sum + states.sum(0) : states.sum(0);
      num_tokens += states.size(0);
      rows.push_back(pooling == Pooling::kFirst ? states[0] : states.mean(0));
    }
  };
  for (size_t begin = 0; begin < pieces.size(); begin += room) {
    const auto chunk = absl::MakeConstSpan(pieces).subspan(begin, room);
    vectors.ranges.push_back(RangeOf(chunk));
    TextPieces text;
    for (const Token& piece : chunk) {
      text.ids.push_back(piece.id);
    }
    const auto example = std::make_shared<Example>();
    WriteTexts(text, /*b=*/std::nullopt, form.marks, form.input, example.get());
    examples.push_back(example);
    if (std::ssize(examples) == kChunksAtATime ||
        begin + room >= pieces.size()) {
      run();
    }
  }
  vectors.parts = torch::stack(rows);
  vectors.document =
      pooling == Pooling::kFirst ? vectors.parts.mean(0) : sum / num_tokens;
  return vectors;
}

}  // namespace

absl::StatusOr<EmbeddedText> EmbedText(const LoadedEncoder& loaded,
                                       const std::vector<std::string>& texts,
                                       const EmbedOptions& options) {
  const torch::NoGradGuard no_gradients;
  const absl::StatusOr<Pooling> pooling =
      options.pooling.has_value() ? *options.pooling : loaded.pooling;
  ETC_RETURN_IF_ERROR(pooling.status());
  if (loaded.config.has_long_tokens) {
    ETC_ASSIGN_OR_RETURN(const EncodedTexts encoded,
                         EncodeDocument(loaded, texts, options.name));
    return EmbedByEtc(loaded, encoded, *pooling);
  }
  ETC_ASSIGN_OR_RETURN(const std::vector<Token> pieces,
                       CheckEncodable(loaded, texts, options.name));
  return EmbedByBert(loaded, pieces, *pooling);
}

int64_t EmbeddingPasses(const LoadedEncoder& loaded, int64_t pieces) {
  if (loaded.config.has_long_tokens) {
    return 1;
  }
  const int64_t in_pass = kChunksAtATime * ChunkFormOf(loaded).pieces;
  return (pieces + in_pass - 1) / in_pass;
}

}  // namespace etc
