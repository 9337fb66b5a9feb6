#include "tasks/pretrain/target_run.h"

#include <c10/util/Exception.h>
#include <torch/autograd.h>
#include <torch/utils.h>

#include <memory>
#include <utility>

#include "base/to_device.h"
#include "tasks/data/batch.h"
#include "tasks/pretrain/pretrain_example.h"
#include "tasks/task.h"
#include "tasks/typed_head.h"

namespace etc {

torch::Tensor RunTargets(EtcModel encoder, const Examples& examples,
                         const torch::Device& device) {
  Examples targets;
  for (const auto& example : examples) {
    const auto& own = ExampleAs<PretrainExample>(*example).targets;
    if (own != nullptr) {
      targets.push_back(own);
    }
  }
  if (targets.empty()) {
    return {};
  }
  const EtcInput input = EncoderInputOf(MakeBatch(targets, device));
  const int64_t length = input.global_token_ids.size(1);
  std::vector<int64_t> rows;
  for (size_t b = 0; b < targets.size(); ++b) {
    for (int64_t g = 0; g < targets[b]->global_length(); ++g) {
      rows.push_back(static_cast<int64_t>(b) * length + g);
    }
  }
  return encoder->forward(input).global_output.flatten(0, 1).index_select(
      0, ToDevice(torch::tensor(rows, torch::kInt64), device));
}

UpdateTargets::UpdateTargets(EtcModel encoder, UpdateTargets** user)
    : encoder_(std::move(encoder)), user_(user) {
  *user_ = this;
}

UpdateTargets::~UpdateTargets() { *user_ = nullptr; }

void UpdateTargets::Add(const Examples& examples, const torch::Device& device) {
  TORCH_CHECK(next_ == 0, "a micro-batch came after the first was run");
  const torch::NoGradGuard no_grad;
  Part part = {.examples = examples,
               .targets = RunTargets(encoder_, examples, device),
               .begin = parts_.empty() ? 0 : parts_.back().end};
  part.end = part.begin + (part.targets.defined() ? part.targets.size(0) : 0);
  parts_.push_back(std::move(part));
}

UpdateTargets::Share UpdateTargets::Next() {
  TORCH_CHECK(next_ < parts_.size(), "a micro-batch was not added");
  if (!all_.defined() && parts_.back().end > 0) {
    std::vector<torch::Tensor> targets;
    for (const Part& part : parts_) {
      if (part.targets.defined()) {
        targets.push_back(part.targets);
      }
    }
    all_ = torch::cat(targets).requires_grad_();
  }
  const Part& part = parts_[next_++];
  return {.targets = all_, .begin = part.begin, .end = part.end};
}

void UpdateTargets::AddGradient(size_t micro_batch) {
  const Part& part = parts_[micro_batch];
  // No gradient: no sentence was hidden, or only one, which has no negatives.
  if (part.begin == part.end || !all_.defined() || !all_.grad().defined()) {
    return;
  }
  torch::autograd::backward(
      {RunTargets(encoder_, part.examples, all_.device())},
      {all_.grad().slice(0, part.begin, part.end)});
}

}  // namespace etc
