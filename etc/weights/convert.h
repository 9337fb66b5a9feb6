#ifndef ETC_ETC_WEIGHTS_CONVERT_H_
#define ETC_ETC_WEIGHTS_CONVERT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "etc/config.h"
#include "etc/weights/source_files.h"
#include "etc/weights/weight_plan.h"
#include "etc/weights/weights.h"

namespace etc {

struct ImportOptions {
  // What OpenWeights takes.
  std::string source;
  // Whether BERT becomes ETC, as PlanWeights has it. Otherwise it stays what it
  // is, in our form.
  bool lift = false;
  // "off", "sum" or "mean" where the source cannot say what it was trained
  // with; empty: as the source says.
  std::string residual_attention;
  WeightPlanOptions plan;
  // Of the numbers of parameters that the source has not.
  uint64_t seed = 1;
};

// What an import comes to. Nothing of the source is read yet but its headers.
struct ImportPlan {
  WeightFile file;
  // Of the result.
  EtcConfig config;
  WeightPlan plan;
  TokenizerFiles tokenizer;
};

//   kInvalidArgument  `lift` for a source that is not BERT's, and what
//                     OpenWeights, FindTokenizer and PlanWeights say
absl::StatusOr<ImportPlan> PlanImport(const ImportOptions& options);

// Writes our checkpoint directory: etc_config.json, model.safetensors, and the
// vocabulary with tokenizer_config.json.
//   kAlreadyExists  there is one in `directory`
absl::Status WriteImport(const ImportPlan& plan, uint64_t seed,
                         const std::string& directory);

// The parameters of the encoder in a file, by our names, in float32.
absl::StatusOr<NamedTensors> ReadEncoder(const WeightFile& file);

enum class ExportFormat { kSafetensors, kTensorFlow };

// Writes the encoder of any source into `directory` as its own world keeps it:
//
//            kTensorFlow                        kSafetensors
//   ETC      model.ckpt, official names         model.safetensors, the same
//            and etc_config.json                names and etc_config.json
//   BERT     bert_model.ckpt, Google's names    model.safetensors,
//            and bert_config.json               HuggingFace's names and
//                                               config.json
//
// and the vocabulary. Returns the paths written, the weights last.
//   kAlreadyExists    there are such weights in `directory`
//   kInvalidArgument  what the other world cannot say or compute: its gelu, the
//                     epsilon of its LayerNorms
absl::StatusOr<std::vector<std::string>> ExportWeights(
    const std::string& source, ExportFormat format,
    const std::string& directory);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_CONVERT_H_
