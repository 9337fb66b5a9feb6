#ifndef ETC_ETC_WEIGHTS_PRETRAINING_HEADS_H_
#define ETC_ETC_WEIGHTS_PRETRAINING_HEADS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "etc/config.h"
#include "etc/weights/checkpoint.h"
#include "etc/weights/encoder_parameters.h"
#include "etc/weights/head_plan.h"
#include "etc/weights/hugging_face_fields.h"
#include "etc/weights/weights.h"

namespace etc {

// The heads of pre-training, and those of fine-tuned models that other codes
// have too, in files: the counterpart of weights.h for the encoder. Their
// tensors are named as by PretrainingParameters and TaskHeadParameters:
// "head.mlm.*", "head.pooler.*", "head.nsp.*", "head.cpc.kernel",
// "head.classifier.*", "head.qa_outputs.*".

// Fills those of the heads in `heads` (by our names, on any device) that the
// file has, for an encoder of the configuration `config`. A head in `heads`
// must be there as a whole (c10::Error). All or nothing; parameters that are
// missing in the plan stay as they were initialised. `output_rows` as in
// HeadPlanOptions.
//   kInvalidArgument  what PlanHeads and CopyTensors reject, and a tied tensor
//                     of the plan that differs from the one read in its place
absl::StatusOr<HeadPlan> FillHeads(
    const WeightFile& file, const EtcConfig& config, const NamedTensors& heads,
    const std::vector<int64_t>& output_rows = {});

// The heads of `plan`, by our names, in float32. Rows of the output bias that
// the plan has no source for are 0. Errors as FillHeads.
absl::StatusOr<NamedTensors> ReadHeads(const WeightFile& file,
                                       const HeadPlan& plan);

// Heads by our names under the names, and in the layout, of another style. The
// result may share their memory. Tensors of other names are left out.
NamedTensors HeadsInStyle(const NamedTensors& heads, const EtcConfig& config,
                          NameStyle style);

// Makes the outputs of a regression's classifier, if `heads` has one, the
// numbers that they stand for by `fields.mean` and `fields.deviation`.
void UndoScaling(const HuggingFaceFields& fields, NamedTensors* heads);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_PRETRAINING_HEADS_H_
