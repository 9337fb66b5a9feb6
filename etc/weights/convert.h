#ifndef ETC_ETC_WEIGHTS_CONVERT_H_
#define ETC_ETC_WEIGHTS_CONVERT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "etc/config.h"
#include "etc/weights/checkpoint.h"
#include "etc/weights/encoder_parameters.h"
#include "etc/weights/tokenizer_files.h"
#include "etc/weights/weight_plan.h"
#include "etc/weights/weights.h"

namespace etc {

struct ImportOptions {
  // As for OpenWeights.
  std::string source;
  // Whether BERT is lifted to ETC (PlanWeights). Otherwise it stays BERT, in
  // our files.
  bool lift = false;
  // "off", "sum" or "mean", for a source that does not say what it was trained
  // with; empty: as the source says.
  std::string residual_attention;
  WeightPlanOptions plan;
  // Of the random numbers for parameters that the source lacks.
  uint64_t seed = 1;
};

// What an import will do. Of the source only the headers have been read.
struct ImportPlan {
  WeightFile file;
  EtcConfig config;  // of the result
  WeightPlan plan;
  TokenizerFiles tokenizer;
};

//   kInvalidArgument  `lift` for a source that is not BERT, and what
//                     OpenWeights, FindTokenizer and PlanWeights say
absl::StatusOr<ImportPlan> PlanImport(const ImportOptions& options);

// Writes a checkpoint directory of ours: etc_config.json, model.safetensors,
// and the vocabulary with tokenizer_config.json.
//   kAlreadyExists  `directory` has a model.safetensors
absl::Status WriteImport(const ImportPlan& plan, uint64_t seed,
                         const std::string& directory);

// The parameters of the encoder in a file, by our names, in float32.
absl::StatusOr<NamedTensors> ReadEncoder(const WeightFile& file);

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

enum class ExportFormat { kSafetensors, kTensorFlow };

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
// and the vocabulary. Returns the paths written, the weights last.
//   kAlreadyExists    `directory` has such weights
//   kInvalidArgument  the project's code cannot compute the model: its gelu or
//                     the epsilon of its LayerNorms
absl::StatusOr<std::vector<std::string>> ExportWeights(
    const std::string& source, ExportFormat format,
    const std::string& directory);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_CONVERT_H_
