#ifndef ETC_ETC_WEIGHTS_IMPORT_PLAN_H_
#define ETC_ETC_WEIGHTS_IMPORT_PLAN_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "etc/config.h"
#include "etc/weights/checkpoint.h"
#include "etc/weights/convert.h"
#include "etc/weights/encoder_parameters.h"
#include "etc/weights/head_plan.h"
#include "etc/weights/hugging_face_fields.h"
#include "etc/weights/tokenizer_files.h"
#include "etc/weights/weight_plan.h"
#include "etc/weights/weights.h"

namespace etc {

// The steps of convert.h.

// The weights in our checkpoint directories, and in those of HuggingFace.
inline constexpr char kOurWeights[] = "model.safetensors";
// In the metadata of each such file: HuggingFace's loaders require it
// (doc/formats.md 1.2).
inline constexpr std::pair<const char*, const char*> kFormatMetadata = {
    "format", "pt"};

// Writes the vocabulary, if there is one, into a directory of weights.
absl::Status CopyTokenizer(const TokenizerFiles& tokenizer,
                           const std::string& directory);

// The inputs that transformers makes of texts for a model.
struct ModelInputs {
  int64_t max_length = 0;  // in tokens
  bool has_types = true;   // of tokens: 0, or 1 in a second text
};

// CopyTokenizer, with the inputs in tokenizer_config.json, and of a
// tokenizer.json of type "huggingface" its class in transformers and its
// special tokens by their usual names; WriteTextMarks completes the file.
//   kInvalidArgument  a tokenizer.json that is no JSON
absl::Status CopyTokenizerFor(const ModelInputs& inputs,
                              const TokenizerFiles& tokenizer,
                              const std::string& directory);

// The plan of an import. Only the headers of the source have been read.
struct ImportPlan {
  WeightFile file;
  EtcConfig config;  // of the result
  WeightPlan plan;
  // Heads of pre-training that come along: `plan` does not call them dropped.
  HeadPlan heads;
  // Kept in the metadata.
  HuggingFaceFields hugging_face;
  TokenizerFiles tokenizer;
  // The rows of the source's token table with the pieces of `tokenizer`, or -1;
  // empty: its rows are taken as they are.
  std::vector<int64_t> token_rows;
};

//   kInvalidArgument  `lift` for a source that is not BERT; a SentencePiece
//                     model for a RoBERTa whose own pieces are not known
// and the errors of OpenWeights, FindTokenizer, DescribeTokenizerAt and
// PlanWeights.
absl::StatusOr<ImportPlan> PlanImport(const ImportOptions& options);

// The metadata of the safetensors file of an import: its heads and the fields
// that are kept.
std::map<std::string, std::string> MetadataFor(const ImportPlan& plan);

// Does all that WriteImport does before it writes, and returns the tensors of
// the result, by our names. Refuses whatever WriteImport refuses, also a
// `directory` that CheckNoWeightsIn refuses or that cannot be made; "" is not
// checked.
absl::StatusOr<NamedTensors> ReadImport(const ImportPlan& plan, uint64_t seed,
                                        const std::string& directory);

// Carries out `plan`, as ImportWeights.
absl::Status WriteImport(const ImportPlan& plan, uint64_t seed,
                         const std::string& directory);

// The parameters of the encoder in a file, by our names, in float32.
absl::StatusOr<NamedTensors> ReadEncoder(const WeightFile& file);

// Returns the notices of `plan`, and for files of ours a warning that names the
// heads that it does not take.
std::vector<std::string> WarningsOfHeads(const SourceWeights& source,
                                         const HeadPlan& plan);

// The parameters of an encoder under the names, and in the layout, of another
// style, each name after the prefix that the style's own code writes
// ("etc_document_bert/", "bert/", "bert."). `encoder` has them by our names;
// the result may share its memory. `config` gives their shapes.
//   kInvalidArgument  the style cannot represent the model: BERT has no
//                     relative positions, and one tensor for parameters that
//                     may differ in ETC
absl::StatusOr<NamedTensors> TensorsInStyle(const NamedTensors& encoder,
                                            const EtcConfig& config,
                                            NameStyle style);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_IMPORT_PLAN_H_
