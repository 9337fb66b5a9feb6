#ifndef ETC_ETC_ENCODER_DECODER_TRANSLATE_H_
#define ETC_ETC_ENCODER_DECODER_TRANSLATE_H_

#include <torch/types.h>

#include <vector>

#include "etc/encoder_decoder/beam_search.h"
#include "etc/encoder_decoder/decoder.h"
#include "etc/encoder_decoder/encoder.h"
#include "etc/encoder_decoder/model.h"

namespace etc {

// A search, and how its lengths follow from those of the sources.
struct TranslateOptions {
  BeamSearchOptions beam = {};
  // a: an output has at most floor(a S + beam.max_length) tokens in front of
  // the end, S being the length of the longest source of the batch, padding and
  // end included; and never more than the decoder's positions but one. With
  // a > 0 a result depends on the batch that it is in.
  double max_length_per_source = 0.0;
};

// Beam search (etc/encoder_decoder/beam_search.h) by incremental decoding: of
// each source the translations in the model's log-probabilities, which are
// float32, best first. The model is in evaluation mode.
//
//   source_ids  [B, S], as EncoderDecoder::forward has them
//
// Throws c10::Error in training mode, for options out of range
// (CheckBeamSearchOptions), and as the model does.
std::vector<std::vector<BeamHypothesis>> Translate(
    EncoderDecoder model, const torch::Tensor& source_ids,
    const TranslateOptions& options);

// The same for the output of any encoder.
std::vector<std::vector<BeamHypothesis>> Translate(
    TransformerDecoder decoder, const DecoderMemory& memory,
    const TranslateOptions& options);

}  // namespace etc

#endif  // ETC_ETC_ENCODER_DECODER_TRANSLATE_H_
