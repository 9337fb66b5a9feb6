#include "tasks/train/gradient_sums.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/utils.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "base/status_macros.h"

namespace etc {
namespace {

using torch::autograd::variable_list;

// Returns the position of a parameter's gradient in a backward pass: encoder
// parameters outside of layers are behind its last one, which comes first, or
// before its first. Heads come last, since they use varying parts of the
// encoder.
int64_t PlaceInPass(const std::string& name) {
  constexpr int64_t kLast = std::numeric_limits<int64_t>::max();
  if (!absl::StartsWith(name, "encoder.")) {
    return kLast;
  }
  if (absl::StrContains(name, "embedding")) {
    return kLast - 1;
  }
  for (size_t dot = name.find('.'); dot != std::string::npos;
       dot = name.find('.', dot + 1)) {
    const std::string part =
        name.substr(dot + 1, name.find('.', dot + 1) - dot - 1);
    int64_t layer = 0;
    if (absl::SimpleAtoi(part, &layer)) {
      return kLast - 2 - layer;
    }
  }
  return 0;
}

}  // namespace

GradientSums::GradientSums(const NamedTensors& parameters, ProcessGroup* group,
                           size_t bucket_bytes)
    : group_(group) {
  std::vector<std::pair<int64_t, torch::Tensor>> order;
  for (const auto& [name, tensor] : parameters) {
    order.emplace_back(PlaceInPass(name), tensor);
  }
  std::stable_sort(
      order.begin(), order.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<torch::Tensor> tensors;
  for (const auto& [place, tensor] : order) {
    tensors.push_back(tensor);
  }
  for (const std::vector<torch::Tensor>& bucket :
       BucketsOf(tensors, bucket_bytes)) {
    std::vector<Parameter*>& here = buckets_.emplace_back();
    for (const torch::Tensor& tensor : bucket) {
      parameters_.push_back(std::make_unique<Parameter>());
      Parameter* const parameter = parameters_.back().get();
      parameter->tensor = tensor;
      parameter->bucket = buckets_.size() - 1;
      // A pointer of another kind in each LibTorch.
      const auto accumulator = torch::autograd::impl::grad_accumulator(tensor);
      const uintptr_t hook = accumulator->add_post_hook(
          std::make_unique<torch::autograd::utils::LambdaPostHook>(
              [this, parameter](const variable_list& outputs,
                                const variable_list& /*inputs*/) {
                GradientGrew(parameter);
                return outputs;
              }));
      parameter->remove_hook = [accumulator, hook] {
        accumulator->del_post_hook(hook);
      };
      here.push_back(parameter);
    }
  }
}

GradientSums::~GradientSums() {
  for (const auto& parameter : parameters_) {
    parameter->remove_hook();
  }
}

void GradientSums::BeginLastPass() {
  missing_.assign(buckets_.size(), 0);
  for (const auto& parameter : parameters_) {
    parameter->grew = 0;
    missing_[parameter->bucket] += parameter->expected > 0 ? 1 : 0;
  }
  is_last_pass_ = true;
}

void GradientSums::GradientGrew(Parameter* parameter) {
  if (!is_last_pass_) {
    return;
  }
  ++parameter->grew;
  if (parameter->grew == parameter->expected) {
    --missing_[parameter->bucket];
    SendComplete();
  }
}

void GradientSums::SendComplete() {
  while (sent_ < buckets_.size() && missing_[sent_] == 0) {
    Send(sent_);
  }
}

void GradientSums::Send(size_t bucket) {
  std::vector<torch::Tensor> sums;
  for (Parameter* const parameter : buckets_[bucket]) {
    torch::Tensor& gradient = parameter->tensor.mutable_grad();
    parameter->had_gradient = gradient.defined();
    parameter->sum = gradient.defined()
                         ? gradient.detach().contiguous()
                         : torch::zeros_like(parameter->tensor.detach());
    // Gradients from here on are late.
    gradient = torch::Tensor();
    sums.push_back(parameter->sum);
  }
  group_->BeginSum(sums);
  ++sent_;
}

void GradientSums::SendRest() {
  is_last_pass_ = false;
  sent_early_ = sent_;
  while (sent_ < buckets_.size()) {
    Send(sent_);
  }
  sent_ = 0;
}

absl::Status GradientSums::Finish(double* number) {
  for (const auto& parameter : parameters_) {
    parameter->expected = std::max(parameter->expected, parameter->grew);
  }
  ETC_RETURN_IF_ERROR(group_->FinishSums());
  const size_t count = parameters_.size();
  torch::Tensor taken =
      torch::zeros({static_cast<int64_t>(2 * count + 1)}, torch::kFloat64);
  double* const numbers = taken.data_ptr<double>();
  for (size_t i = 0; i < count; ++i) {
    numbers[i] = parameters_[i]->had_gradient ? 1 : 0;
    numbers[count + i] = parameters_[i]->tensor.grad().defined() ? 1 : 0;
  }
  numbers[2 * count] = *number;
  ETC_RETURN_IF_ERROR(group_->Sum({taken}));
  *number = numbers[2 * count];
  std::vector<bool> late(count);
  for (size_t i = 0; i < count; ++i) {
    late[i] = numbers[count + i] > 0;
  }
  ETC_RETURN_IF_ERROR(AddLate(late));
  for (size_t i = 0; i < count; ++i) {
    Parameter& parameter = *parameters_[i];
    const bool has_gradient = numbers[i] > 0 || late[i];
    parameter.tensor.mutable_grad() =
        has_gradient ? std::exchange(parameter.sum, {}) : torch::Tensor();
    parameter.sum.reset();
  }
  return absl::OkStatus();
}

absl::Status GradientSums::AddLate(const std::vector<bool>& late) {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> parts;
  for (size_t i = 0; i < late.size(); ++i) {
    if (late[i]) {
      const torch::Tensor& gradient = parameters_[i]->tensor.grad();
      parts.push_back(gradient.defined()
                          ? gradient.detach().contiguous()
                          : torch::zeros_like(parameters_[i]->sum));
    }
  }
  ETC_RETURN_IF_ERROR(group_->Sum(parts));
  size_t next = 0;
  for (size_t i = 0; i < late.size(); ++i) {
    if (late[i]) {
      parameters_[i]->sum.add_(parts[next++]);
    }
  }
  return absl::OkStatus();
}

absl::Status GradientSums::Drop() {
  for (const auto& parameter : parameters_) {
    parameter->sum.reset();
  }
  return group_->FinishSums();
}

}  // namespace etc
