#ifndef ETC_ETC_WEIGHTS_CONVERT_H_
#define ETC_ETC_WEIGHTS_CONVERT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "etc/model.h"
#include "etc/weights/checkpoint.h"

namespace etc {

// Source of an import, and the changes made on the way.
struct ImportOptions {
  // Weights of any origin: see doc/weights.md.
  std::string source = {};
  // True to lift BERT to ETC (doc/model.md 11). Otherwise it stays BERT, in our
  // files.
  bool lift = false;
  // "off", "sum", "mean", "decay" or "gate", or with a number "decay=0.95" (its
  // beta) or "gate=0.5" (gates that the source lacks), for a source that does
  // not say what it was trained with; empty: as the source says.
  std::string residual_attention = {};
  // The rows of the segment table when BERT is lifted: BERT's row 0, which it
  // used for all tokens of a single text, in every row; or rows by index as far
  // as BERT has them (doc/formats.md 3.4).
  bool segments_by_index = false;
  // Path of a vocabulary that is taken instead of the source's, with the
  // statements about it that only the source's files make; empty: the source's.
  // Where a source with byte-level pieces, as RoBERTa, is lifted and this is a
  // SentencePiece model, each row of the token table is the source's of the
  // same piece, or initialised anew; otherwise rows are taken as they are.
  std::string vocabulary = {};
  // True to convert heads as well (pretraining_heads.h), as far as the source
  // has them, and the labels of a classifier. Lifting leaves out the pooler and
  // what reads it, and the answer span: ETC is not pre-trained with them.
  bool heads = true;
  // Seed of the random numbers for parameters that the source lacks.
  uint64_t seed = 1;
};

// Writes a checkpoint directory of ours: etc_config.json, model.safetensors,
// and the vocabulary with tokenizer_config.json.
//   kAlreadyExists    `directory` has a file that is looked for beside weights,
//                     of these or others; the message names it
//   kInvalidArgument  `lift` for a source that is not BERT; weights, a
//                     configuration or a vocabulary that cannot be used, with
//                     the reason: a weight that is infinite or not a number, a
//                     vocabulary that does not fit the embedding, a
//                     SentencePiece model for a RoBERTa whose own pieces are
//                     not known
//   kUnimplemented    `vocabulary` has an option that is not supported
//                     (DescribeTokenizerAt)
//   kNotFound         there is no such source, or no such vocabulary
absl::Status ImportWeights(const ImportOptions& options,
                           const std::string& directory);

// Fills an encoder from weights of any origin (doc/weights.md), BERT's being
// lifted if the encoder has relative positions. All or nothing. In the report
// "missing" are the model's parameters that stay as they were initialised, but
// for gates, which a notice tells of, "unexpected" the file's tensors that are
// not used.
//   kNotFound         there are no weights at `path`
//   kInvalidArgument  sizes differ, or weights are missing, malformed or of
//                     another shape
absl::StatusOr<LoadReport> LoadEncoderWeights(const std::string& path,
                                              const EtcModel& model);

// File formats of an export: those of HuggingFace and of TensorFlow.
enum class ExportFormat { kSafetensors, kTensorFlow };

// Result of ExportWeights.
struct ExportReport {
  std::vector<std::string> written = {};  // paths, the weights last
  // Names of heads that were left behind, since the format has none like them,
  // and the reason why a vocabulary was.
  std::vector<std::string> warnings = {};
};

// Writes the encoder of any source into `directory` as the project of its kind
// does:
//
//            kTensorFlow                        kSafetensors
//   ETC      model.ckpt, official names         model.safetensors, the same
//            and etc_config.json                names and etc_config.json
//   BERT     bert_model.ckpt, Google's names    model.safetensors,
//            and bert_config.json               HuggingFace's names and
//                                               config.json
//
// and the vocabulary; heads (pretraining_heads.h), which the source may have,
// by BERT's names, and the labels of a classifier. RoBERTa is written as
// HuggingFace's RoBERTa, XLM-RoBERTa or CamemBERT: it is one if it comes from
// one. Residual attention "sum" and "mean" are RealFormer's use_running_mean in
// BERT's configurations, "decay" is in fields of ours there; "gate" is written
// as the mode that its gates compute, off or sum.
//   kAlreadyExists    `directory` has a file that is looked for beside weights
//   kInvalidArgument  the project's code cannot compute the model: its gelu,
//                     the epsilon of its LayerNorms or its sublayer, or a head
//                     that it has otherwise or not at all, as ETC's code no
//                     classifier and no answer span, or gates that are
//                     neither all 0 nor all 1; a weight that is infinite or not
//                     a number
absl::StatusOr<ExportReport> ExportWeights(const std::string& source,
                                           ExportFormat format,
                                           const std::string& directory);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_CONVERT_H_
