#include "tasks/pretrain/target_run.h"

#include <c10/util/Exception.h>
#include <torch/autograd.h>
#include <torch/utils.h>

#include <memory>
#include <utility>

#include "base/to_device.h"
#include "etc/nn/gradient_checkpoint.h"
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
  const torch::Tensor row_ids =
      ToDevice(torch::tensor(rows, torch::kInt64), device);
  return CheckpointGradients(
      [=](const std::vector<torch::Tensor>&) mutable {
        return std::vector{
            encoder->forward(input).global_output.flatten(0, 1).index_select(
                0, row_ids)};
      },
      {input.global_token_ids}, encoder->parameters())[0];
}

UpdateTargets::UpdateTargets(EtcModel encoder, UpdateTargets** user)
    : encoder_(std::move(encoder)), user_(user) {
  *user_ = this;
}

UpdateTargets::~UpdateTargets() { *user_ = nullptr; }

void UpdateTargets::Add(const Examples& examples, const torch::Device& device) {
  TORCH_CHECK(!all_.defined(), "a micro-batch came after the first was run");
  runs_.push_back(RunTargets(encoder_, examples, device));
  ends_.push_back((ends_.empty() ? 0 : ends_.back()) +
                  (runs_.back().defined() ? runs_.back().size(0) : 0));
}

UpdateTargets::Share UpdateTargets::Next() {
  TORCH_CHECK(next_ < runs_.size(), "a micro-batch was not added");
  if (!all_.defined() && ends_.back() > 0) {
    const torch::NoGradGuard no_grad;
    std::vector<torch::Tensor> parts;
    for (const torch::Tensor& run : runs_) {
      if (run.defined()) {
        parts.push_back(run.detach());
      }
    }
    all_ = torch::cat(parts).requires_grad_();
  }
  const int64_t begin = next_ == 0 ? 0 : ends_[next_ - 1];
  return {.targets = all_, .begin = begin, .end = ends_[next_++]};
}

void UpdateTargets::AddGradient() {
  if (!all_.defined() || !all_.grad().defined()) {
    return;
  }
  for (size_t i = 0; i < runs_.size(); ++i) {
    if (runs_[i].defined()) {
      const int64_t begin = i == 0 ? 0 : ends_[i - 1];
      torch::autograd::backward({runs_[i]},
                                {all_.grad().slice(0, begin, ends_[i])});
    }
  }
}

}  // namespace etc
