#ifndef ETC_ETC_ENCODER_DECODER_FAIRSEQ_NAMES_H_
#define ETC_ETC_ENCODER_DECODER_FAIRSEQ_NAMES_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "etc/encoder_decoder/model.h"
#include "etc/weights/checkpoint.h"

namespace etc {

// The parameters of a model in the names and shapes of fairseq of 2019, those
// of ADMIN included (doc/translation.md 1.7): query, key and value projections
// are one tensor, a table that encoder and decoder share has two names. New
// tensors, without gradient, where they are stacked; others share the model's
// memory.
//   kInvalidArgument  sublayer "rezero", or gates, which fairseq does not have
absl::StatusOr<NamedTensors> FairseqTensors(const EncoderDecoder& model);

// Fills a model from such tensors, in a file of torch.save (whose dictionary
// may hold them as "model", beside other things) or of any other format. Names
// of later versions are read too: q_proj, k_proj and v_proj of each attention,
// and decoder.output_projection, the decoder's table or that of the output. The
// model's configuration says what should be there; gates, which no file has,
// stay. Tensors called "version" or "_float_tensor", which have no meaning, are
// passed over. All or nothing.
//   kInvalidArgument  tensors that are missing, that the model does not have,
//                     or of another shape; tables that should be one and
//                     differ; sublayer "rezero"
//   others            errors of TensorReader::Read
absl::Status LoadFairseqTensors(const TensorReader& reader,
                                const EncoderDecoder& model);

}  // namespace etc

#endif  // ETC_ETC_ENCODER_DECODER_FAIRSEQ_NAMES_H_
