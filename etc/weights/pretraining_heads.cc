#include "etc/weights/pretraining_heads.h"

#include <c10/util/Exception.h>
#include <torch/utils.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "etc/weights/pretraining_parameters.h"

namespace etc {
namespace {

// The heads that `tensors` has.
std::vector<PretrainingHead> HeadsOf(const EtcConfig& config,
                                     const NamedTensors& tensors) {
  std::vector<PretrainingHead> heads;
  for (const PretrainingParameter& parameter : AllHeadParameters(config)) {
    if (tensors.contains(parameter.parameter.name) &&
        (heads.empty() || heads.back() != parameter.head)) {
      heads.push_back(parameter.head);
    }
  }
  return heads;
}

// An error unless each tied tensor of the plan has the elements of the tensor
// that is read in its place, with both names.
absl::Status CheckTiedTensors(const TensorReader& reader,
                              const HeadPlan& plan) {
  for (const TiedTensor& tied : plan.tied) {
    ETC_ASSIGN_OR_RETURN(const TensorInfo* one, reader.Find(tied.name));
    ETC_ASSIGN_OR_RETURN(const TensorInfo* other, reader.Find(tied.same_as));
    if (one == other) {
      continue;  // two names of one tensor
    }
    ETC_ASSIGN_OR_RETURN(const torch::Tensor left, reader.Read(tied.name));
    ETC_ASSIGN_OR_RETURN(const torch::Tensor right, reader.Read(tied.same_as));
    if (!torch::equal(left.to(right.scalar_type()), right)) {
      return absl::InvalidArgumentError(
          absl::StrCat(reader.path(), ": tensor ", QuotedName(tied.name),
                       " should be the same as ", QuotedName(tied.same_as),
                       ", to which the MLM head ties it, but differs from it"));
    }
  }
  return absl::OkStatus();
}

absl::Status CopyHeads(const WeightFile& file, const HeadPlan& plan,
                       const NamedTensors& heads) {
  const TensorReader reader(file.tensors);
  ETC_RETURN_IF_ERROR(CheckTiedTensors(reader, plan));
  return CopyTensors(reader, CopiesOf(plan.steps), heads);
}

}  // namespace

absl::StatusOr<HeadPlan> FillHeads(const WeightFile& file,
                                   const EtcConfig& config,
                                   const NamedTensors& heads,
                                   const std::vector<int64_t>& output_rows) {
  ETC_ASSIGN_OR_RETURN(
      HeadPlan plan,
      PlanHeads(file.source, config,
                {.heads = HeadsOf(config, heads), .output_rows = output_rows}));
  ETC_RETURN_IF_ERROR(CopyHeads(file, plan, heads));
  return plan;
}

absl::StatusOr<NamedTensors> ReadHeads(const WeightFile& file,
                                       const HeadPlan& plan) {
  NamedTensors heads;
  for (const WeightStep& step : plan.steps) {
    heads.emplace(step.target.name, torch::zeros(step.target.shape));
  }
  ETC_RETURN_IF_ERROR(CopyHeads(file, plan, heads));
  return heads;
}

NamedTensors HeadsInStyle(const NamedTensors& heads, const EtcConfig& config,
                          NameStyle style) {
  NamedTensors result;
  for (const auto& [head, parameter, others] : AllHeadParameters(config)) {
    const auto found = heads.find(parameter.name);
    const std::string& name = NameInStyle(parameter, style);
    if (found != heads.end() && !name.empty()) {
      const torch::Tensor tensor = found->second.detach();
      result.emplace(
          name, IsTransposedInStyle(parameter, style) ? tensor.t() : tensor);
    }
  }
  return result;
}

void UndoScaling(const HuggingFaceFields& fields, NamedTensors* heads) {
  const auto weight = heads->find("head.classifier.weight");
  const auto bias = heads->find("head.classifier.bias");
  const bool is_scaled = fields.mean != 0 || fields.deviation != 1;
  if (is_scaled && weight != heads->end() && bias != heads->end()) {
    weight->second = weight->second * fields.deviation;
    bias->second = bias->second * fields.deviation + fields.mean;
  }
}

}  // namespace etc
