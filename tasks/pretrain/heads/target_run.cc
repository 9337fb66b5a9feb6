#include "tasks/pretrain/heads/target_run.h"

#include <c10/util/Exception.h>
#include <torch/autograd.h>
#include <torch/utils.h>

#include <utility>

#include "base/status_macros.h"
#include "base/to_device.h"
#include "tasks/data/batch.h"
#include "tasks/pretrain/pretrain_example.h"
#include "tasks/task/benchmark_head.h"
#include "tasks/task/task.h"

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
  const Batch batch = MakeBatch(targets, device);
  EtcInput input = batch.input;
  input.outputs = RowsFor(ReadTokens::kGlobal, batch);
  const int64_t length = input.global_token_ids.size(1);
  std::vector<int64_t> rows;
  for (size_t b = 0; b < targets.size(); ++b) {
    for (int64_t g = 0; g < targets[b]->global_length(); ++g) {
      rows.push_back(static_cast<int64_t>(b) * length + g);
    }
  }
  input.outputs.globals = ToDevice(torch::tensor(rows, torch::kInt64), device);
  return encoder->forward(input).global_output;
}

UpdateTargets::UpdateTargets(EtcModel encoder, UpdateTargets** user)
    : encoder_(std::move(encoder)), user_(user) {
  *user_ = this;
}

UpdateTargets::~UpdateTargets() { *user_ = nullptr; }

void UpdateTargets::Add(const Examples& examples, const torch::Device& device) {
  TORCH_CHECK(next_ == 0, "a micro-batch came after the first was run");
  const torch::NoGradGuard no_grad;
  parts_.push_back({.examples = examples,
                    .targets = RunTargets(encoder_, examples, device)});
}

void UpdateTargets::Skip() { parts_.push_back({.is_here = false}); }

void UpdateTargets::Place(const std::vector<int64_t>& counts) {
  int64_t end = 0;
  for (size_t i = 0; i < parts_.size(); ++i) {
    parts_[i].begin = end;
    end += counts[i];
    parts_[i].end = end;
  }
}

// Each process has zeros where the targets of others are, so that their sum is
// all of them.
absl::Status UpdateTargets::Exchange(ProcessGroup* group) {
  torch::Tensor counts =
      torch::zeros({static_cast<int64_t>(parts_.size())}, torch::kFloat64);
  torch::Tensor some;
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i].targets.defined()) {
      some = parts_[i].targets;
      counts[static_cast<int64_t>(i)] = some.size(0);
    }
  }
  if (group != nullptr) {
    ETC_RETURN_IF_ERROR(group->Sum({counts}));
  }
  const torch::Tensor whole = counts.to(torch::kInt64);
  Place({whole.data_ptr<int64_t>(), whole.data_ptr<int64_t>() + whole.numel()});
  const int64_t count = parts_.empty() ? 0 : parts_.back().end;
  if (count == 0) {
    return absl::OkStatus();
  }
  const torch::NoGradGuard no_grad;
  const torch::Tensor& table = encoder_->token_embedding_table();
  all_ = torch::zeros({count, encoder_->config().hidden_size},
                      some.defined() ? some.options() : table.options());
  for (const Part& part : parts_) {
    if (part.targets.defined()) {
      all_.slice(0, part.begin, part.end).copy_(part.targets);
    }
  }
  if (group != nullptr) {
    ETC_RETURN_IF_ERROR(group->Sum({all_}));
  }
  all_.requires_grad_();
  return absl::OkStatus();
}

absl::Status UpdateTargets::SumGradients(ProcessGroup* group) {
  if (group == nullptr || !all_.defined()) {
    return absl::OkStatus();
  }
  if (!all_.grad().defined()) {
    all_.mutable_grad() = torch::zeros_like(all_);
  }
  return group->Sum({all_.grad()});
}

UpdateTargets::Slice UpdateTargets::Next() {
  while (next_ < parts_.size() && !parts_[next_].is_here) {
    ++next_;
  }
  TORCH_CHECK(next_ < parts_.size(), "a micro-batch was not added");
  const Part& part = parts_[next_++];
  return {.targets = all_, .begin = part.begin, .end = part.end};
}

void UpdateTargets::AddGradient(size_t micro_batch) {
  const Part& part = parts_[micro_batch];
  // No gradient: no sentence was hidden, or only one, which has no negatives.
  if (part.begin == part.end || !all_.defined() || !all_.grad().defined()) {
    return;
  }
  const torch::Tensor targets =
      RunTargets(encoder_, part.examples, all_.device());
  if (targets.requires_grad()) {  // not if the whole encoder is frozen
    torch::autograd::backward({targets},
                              {all_.grad().slice(0, part.begin, part.end)});
  }
}

}  // namespace etc
