#ifndef ETC_ETC_WEIGHTS_COMPARE_H_
#define ETC_ETC_WEIGHTS_COMPARE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace etc {

struct TensorDifference {
  std::string name;
  // "only in <path>", "[2, 3] there, [3, 2] here", "empty, of another dtype",
  // or how far values differ.
  std::string what;
};

struct WeightComparison {
  int64_t same = 0;  // tensors equal to the bit
  std::vector<TensorDifference> differences;
  // "residual_attention: sum there, off here".
  std::vector<std::string> config_differences;
};

// Compares `path` ("here") with `other` ("there"), each anything that
// TensorReader::Open takes: tensors of the same name, with or without the
// prefix and in either spelling of LayerNorms that the naming style knows
// (doc/formats.md 3.3); or if their naming styles differ, the parameters of the
// encoders and of their heads (pretraining_heads.h); and the configurations
// beside them, if both have one. A difference has the name in `path`, if that
// has the tensor.
// Errors are those of OpenWeights and of reading.
absl::StatusOr<WeightComparison> CompareWeights(const std::string& path,
                                                const std::string& other);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_COMPARE_H_
