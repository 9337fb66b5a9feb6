#ifndef ETC_ETC_WEIGHTS_EXPORT_TRANSFORMERS_H_
#define ETC_ETC_WEIGHTS_EXPORT_TRANSFORMERS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "etc/weights/convert.h"

namespace etc {

// How texts become inputs of an exported encoder.
struct TextLimits {
  // Tokens of each stream at most; 0: there is no such stream.
  int64_t max_long_length = 4096;
  int64_t max_global_length = 512;
  // "icu", or another splitter, which the exported code does not have.
  std::string sentences = "icu";
};

// Writes the encoder of any source, and the heads that `import` takes, for
// HuggingFace's transformers, with the Python code that computes them there:
// config.json with the encoder's fields and the classes in `auto_map`, also
// those for a classifier of texts or of tokens; model.safetensors with our
// names (so that it is a checkpoint of ours, too); the vocabulary; and
// modeling_realetc.py with the files that it imports. A model keeps its
// residual attention, gates too; a regression predicts the numbers themselves.
//   kAlreadyExists    `directory` has a file that is looked for beside weights
//   kInvalidArgument  errors of ImportWeights (convert.h)
absl::StatusOr<ExportReport> ExportForTransformers(
    const std::string& source, const TextLimits& limits,
    const std::string& directory);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_EXPORT_TRANSFORMERS_H_
