#ifndef ETC_ETC_WEIGHTS_WEIGHTS_H_
#define ETC_ETC_WEIGHTS_WEIGHTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "etc/config.h"
#include "etc/weights/checkpoint.h"
#include "etc/weights/weight_plan.h"

namespace etc {

// An encoder's weights in a file of whatever origin: ours, official ETC's,
// BERT, RealFormer's BERT or RoBERTa, in every format that TensorReader opens.
struct WeightFile {
  TensorReader reader;
  SourceWeights source;
  std::vector<std::string> warnings;
};

// Opens them and finds out whose they are. `assumed` is their configuration
// where no file with one lies beside them.
//   kNotFound         there are no weights; or no configuration, and none is
//                     assumed
//   kInvalidArgument  nobody's weights that are known, and what opening says
absl::StatusOr<WeightFile> OpenWeights(const std::string& path,
                                       const EtcConfig* assumed = nullptr);

// Does what the plan says with the parameters of an encoder, `encoder` (by our
// names, without prefix), on whatever device. All or nothing: after an error
// they are as they were, for which all is read before anything is copied.
//   kInvalidArgument and others  what TensorReader::Read says
absl::Status LoadPlannedWeights(const TensorReader& reader,
                                const WeightPlan& plan,
                                const NamedTensors& encoder);

// The parameters of an encoder under the names, and in the layout, of another
// style, each name behind the prefix that the style's own code writes
// ("etc_document_bert/", "bert/", "bert."). They may share memory with
// `encoder`. Of each parameter that has one, `config` gives the shape.
//   kInvalidArgument  the style cannot say what the model is: BERT's has no
//                     relative positions and nothing that is apart, and one
//                     tensor for what are two here and differ
absl::StatusOr<NamedTensors> TensorsInStyle(const NamedTensors& encoder,
                                            const EtcConfig& config,
                                            NameStyle style);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_WEIGHTS_H_
