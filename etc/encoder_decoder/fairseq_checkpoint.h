#ifndef ETC_ETC_ENCODER_DECODER_FAIRSEQ_CHECKPOINT_H_
#define ETC_ETC_ENCODER_DECODER_FAIRSEQ_CHECKPOINT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "etc/encoder_decoder/config.h"
#include "etc/encoder_decoder/model.h"
#include "etc/weights/checkpoint.h"

namespace etc {

// Checkpoints of fairseq as torch.save writes them: a dictionary with the
// tensors as "model" and the options of the training as "args", an
// argparse.Namespace, or in later versions as "cfg", of which "model" holds the
// same (doc/translation.md 1.7).

// Returns true if the file has the parameters of fairseq's encoder-decoder.
bool IsFairseqTranslation(const TensorReader& reader);

// Returns true if the file has options of the training. Without them, what
// FairseqConfig takes from the options are fairseq's defaults.
bool HasFairseqOptions(const TensorReader& reader);

// The configuration of a checkpoint. Sizes, numbers of layers, shared tables
// and sublayers follow from the tensors; heads, activation, dropout and lengths
// are those of the options. The three residual_attention modes, which
// WriteFairseqCheckpoint adds to the options, are "off" without them.
//
//   heads  attention heads, for files whose options do not say it; 0: the
//          options say it
//
//   kInvalidArgument  tensors that are missing or that we have no model for:
//                     learned positions, an encoder of another width or
//                     vocabulary than the decoder; no number of heads, one
//                     that differs between encoder and decoder, or another one
//                     than `heads`; options that contradict the tensors
//                     (encoder_normalize_before, decoder_normalize_before) or
//                     ask for another model (no_token_positional_embeddings,
//                     no_scale_embedding, cross_self_attention,
//                     layer_wise_attention)
absl::StatusOr<EncoderDecoderConfig> FairseqConfig(const TensorReader& reader,
                                                   int64_t heads = 0);

// The model of a checkpoint file, in evaluation mode. Errors of FairseqConfig
// and LoadFairseqTensors.
absl::StatusOr<EncoderDecoder> LoadFairseqCheckpoint(const std::string& path,
                                                     int64_t heads = 0);

// Refuses the models that WriteFairseqCheckpoint refuses; writes nothing.
absl::Status CheckFairseqExpressible(const EncoderDecoder& model);

// Writes a checkpoint that fairseq of 2019, with ADMIN's changes for sublayer
// "admin", takes for one of its own: in its names, with the options of
// architecture transformer_wmt_en_de, and an empty history of the optimizer.
// Residual attention scores are options that fairseq does not know.
// torch.load(path, weights_only=False) opens it. Written atomically.
//   kInvalidArgument  as of FairseqTensors; sublayer "admin" on one side only,
//                     or "pre_norm" beside "admin"; a layer_norm_epsilon
//                     other than fairseq's 1e-5
absl::Status WriteFairseqCheckpoint(const std::string& path,
                                    const EncoderDecoder& model);

}  // namespace etc

#endif  // ETC_ETC_ENCODER_DECODER_FAIRSEQ_CHECKPOINT_H_
