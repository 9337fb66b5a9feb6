#ifndef ETC_ETC_WEIGHTS_WEIGHTS_H_
#define ETC_ETC_WEIGHTS_WEIGHTS_H_

#include <torch/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "etc/config.h"
#include "etc/weights/checkpoint.h"
#include "etc/weights/formats/tensor_source.h"
#include "etc/weights/weight_plan.h"

namespace etc {

// The way of weights into parameters: open, plan, copy (doc/architecture.md,
// "The path of a weight").

// An encoder's weights in files of ours, official ETC's, BERT's, RealFormer's
// or RoBERTa's, in any format that OpenTensorSource opens. Copies share the
// files.
struct WeightFile {
  std::shared_ptr<const TensorSource> tensors;
  SourceWeights source;
  std::vector<std::string> warnings;
};

// Opens the files, recognises the names of their tensors and reads the
// configuration beside them. If there is none, it is `assumed`.
//   kNotFound         there are no weights; or no configuration, and `assumed`
//                     is null
//   kInvalidArgument  what OpenTensorSource, RecognizeNames and
//                     ReadSourceConfig reject; a configuration of BERT for
//                     weights of ETC; labels that contradict each other or are
//                     not as many as the classifier's outputs
absl::StatusOr<WeightFile> OpenWeights(const std::string& path,
                                       const EtcConfig* assumed = nullptr);

// Copies tensors of a file into `destination`, on any device, as each of
// `copies` says. All or nothing: names, shapes and dtypes are checked first,
// then all tensors are read, then all are copied; after an error the
// destination is unchanged.
//   kNotFound         a source that the file does not have
//   kInvalidArgument  tensors of another shape; of another dtype unless both
//                     are floating (doc/formats.md 0.5); a row beyond the
//                     source; an element that is copied and that is infinite or
//                     not a number, also only in the destination's dtype
//   others            errors of TensorReader::Read
// Throws c10::Error if `destination` lacks a target.
absl::Status CopyTensors(const TensorReader& reader,
                         const std::vector<TensorCopy>& copies,
                         const NamedTensors& destination);

// The first part of CopyTensors: names, shapes and dtypes.
absl::Status CheckCopies(const TensorReader& reader,
                         const std::vector<TensorCopy>& copies,
                         const NamedTensors& destination);

// The files and the plan from which FillEncoder took the values.
struct FilledEncoder {
  WeightFile file;
  WeightPlan plan;
};

// Opens the weights at `path`, plans how they fill an encoder of this
// configuration, and copies them into `encoder`, its parameters by our names.
// All or nothing. Errors are those of OpenWeights, PlanWeights and CopyTensors.
absl::StatusOr<FilledEncoder> FillEncoder(const std::string& path,
                                          const EtcConfig& config,
                                          const NamedTensors& encoder);

// The type in files of tensors of `type`; null if checkpoints do not hold them.
const Dtype* DtypeOf(torch::ScalarType type);
// The inverse, for the name that a file has; nullopt if LibTorch lacks it.
std::optional<torch::ScalarType> ScalarTypeOf(absl::string_view name);

// The first few texts, and how many more there are.
std::string JoinFirst(const std::vector<std::string>& texts,
                      absl::string_view separator,
                      absl::string_view before_more);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_WEIGHTS_H_
