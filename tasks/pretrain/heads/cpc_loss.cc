#include "tasks/pretrain/heads/cpc_loss.h"

#include <c10/util/Exception.h>
#include <torch/utils.h>

#include "base/apply_linear.h"
#include "base/check_shape.h"

namespace etc {
namespace {

void CheckCpcInput(const CpcInput& input) {
  TORCH_CHECK(input.contexts.dim() == 2 && input.targets.dim() == 2 &&
                  input.contexts.size(1) == input.targets.size(1),
              "contexts should be [M, H] and targets [N, H], but are ",
              input.contexts.sizes(), " and ", input.targets.sizes());
  const int64_t contexts = input.contexts.size(0);
  const int64_t targets = input.targets.size(0);
  const int64_t hidden = input.contexts.size(1);
  TORCH_CHECK(input.temperature > 0, "temperature should be positive, but is ",
              input.temperature);
  if (input.kernel.defined()) {
    ETC_CHECK_SHAPE(input.kernel, {hidden, hidden});
  }
  ETC_CHECK_SHAPE(input.target_rows, {contexts});
  // Elsewhere the check would stop the stream.
  if (input.target_rows.is_cpu() && contexts > 0) {
    const int64_t lowest = input.target_rows.min().item<int64_t>();
    const int64_t highest = input.target_rows.max().item<int64_t>();
    TORCH_CHECK(lowest >= 0 && highest < targets,
                "target rows should be in [0, ", targets, "), but range from ",
                lowest, " to ", highest);
  }
}

}  // namespace

CpcLosses ComputeCpcLosses(const CpcInput& input) {
  CheckCpcInput(input);
  const torch::Tensor& rows = input.target_rows;
  const torch::Tensor contexts =  // [M, H]
      input.kernel.defined() ? ApplyLinear(input.contexts, input.kernel.t())
                             : input.contexts;
  torch::Tensor scores =  // [M, N]
      ApplyLinear(contexts, input.targets) / input.temperature;
  if (scores.scalar_type() != torch::kFloat64) {
    scores = scores.to(torch::kFloat32);
  }
  CpcLosses result;
  result.losses = torch::log_softmax(scores, 1)
                      .gather(1, rows.unsqueeze(1))
                      .squeeze(1)
                      .neg();
  // The largest of no columns is not defined.
  result.correct = scores.numel() == 0
                       ? torch::zeros({0}, rows.options().dtype(torch::kBool))
                       : std::get<1>(scores.max(1)).eq(rows);
  return result;
}

}  // namespace etc
