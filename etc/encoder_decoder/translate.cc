#include "etc/encoder_decoder/translate.h"

#include <c10/util/Exception.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

namespace etc {
namespace {

// [n] int64 on the CPU.
torch::Tensor IdTensor(const std::vector<int64_t>& values) {
  return torch::tensor(values, torch::kInt64);
}

BeamSearchOptions OptionsFor(const TranslateOptions& options,
                             const DecoderMemory& memory,
                             const TransformerDecoder& decoder) {
  TORCH_CHECK(std::isfinite(options.max_length_per_source) &&
                  options.max_length_per_source >= 0,
              "max_length_per_source should be at least 0, but is ",
              options.max_length_per_source);
  BeamSearchOptions beam = options.beam;
  const double longest = options.max_length_per_source *
                             static_cast<double>(memory.states.size(1)) +
                         static_cast<double>(beam.max_length);
  // The end stands behind the last token.
  beam.max_length = static_cast<int64_t>(std::min(
      std::floor(longest), static_cast<double>(decoder->max_positions() - 1)));
  const absl::Status status =
      CheckBeamSearchOptions(beam, decoder->vocab_size(), "BeamSearchOptions");
  TORCH_CHECK(status.ok(), std::string(status.message()));
  return beam;
}

}  // namespace

std::vector<std::vector<BeamHypothesis>> Translate(
    TransformerDecoder decoder, const DecoderMemory& memory,
    const TranslateOptions& options) {
  const torch::NoGradGuard no_grad;
  DecoderCache cache = decoder->Begin(memory);
  const BeamSearchOptions beam = OptionsFor(options, memory, decoder);
  torch::Tensor log_probabilities;  // [rows, V] float32, read by the search
  const auto next = [&](const BeamStep& step) {
    cache.Select(IdTensor(step.parents), IdTensor(step.sentences));
    const torch::Tensor states =
        decoder->Step(IdTensor(step.tokens).to(memory.states.device()), &cache);
    log_probabilities = torch::log_softmax(decoder->Logits(states), -1)
                            .to(torch::kCPU, torch::kFloat32)
                            .contiguous();
    return static_cast<const float*>(log_probabilities.data_ptr<float>());
  };
  return BeamSearch(beam, decoder->vocab_size(), memory.states.size(0), next);
}

std::vector<std::vector<BeamHypothesis>> Translate(
    EncoderDecoder model, const torch::Tensor& source_ids,
    const TranslateOptions& options) {
  TORCH_CHECK(!model->is_training(),
              "translating should be in evaluation mode");
  const torch::NoGradGuard no_grad;
  return Translate(model->decoder(), model->encoder()->forward(source_ids),
                   options);
}

}  // namespace etc
