#include "tasks/task/benchmark_head.h"

#include <torch/autograd.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/nn/functional/loss.h>
#include <torch/utils.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/initializers.h"
#include "base/to_device.h"
#include "tasks/task/naming_place.h"

namespace etc {
namespace {

// Added by the official code to the number of examples.
constexpr double kOfficialEpsilon = 1e-5;

bool AnyRequiresGrad(const std::vector<torch::Tensor>& tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](const auto& tensor) {
    return tensor.defined() && tensor.requires_grad();
  });
}

// "the head's losses in evaluation mode", of the name "losses".
std::string PlaceIn(const torch::nn::Module& head, const char* name) {
  return absl::StrCat("the head's ", name,
                      head.is_training() ? "" : " in evaluation mode");
}

using AutogradNodes = std::set<const torch::autograd::Node*>;

// The functions that gave `tensors`.
AutogradNodes NodesOf(const std::vector<torch::Tensor>& tensors) {
  AutogradNodes nodes;
  for (const torch::Tensor& tensor : tensors) {
    if (tensor.defined() && tensor.grad_fn() != nullptr) {
      nodes.insert(tensor.grad_fn().get());
    }
  }
  return nodes;
}

// The leaves to which a backward pass from `roots` would bring gradients, if it
// went no further than to `ends`.
std::vector<torch::Tensor> LeavesBelow(const std::vector<torch::Tensor>& roots,
                                       const AutogradNodes& ends) {
  std::vector<torch::Tensor> leaves;
  AutogradNodes seen = ends;
  std::vector<const torch::autograd::Node*> open;
  const auto add = [&](const torch::autograd::Node* node) {
    if (node != nullptr && seen.insert(node).second) {
      open.push_back(node);
    }
  };
  for (const torch::autograd::Node* node : NodesOf(roots)) {
    add(node);
  }
  while (!open.empty()) {
    const torch::autograd::Node* const node = open.back();
    open.pop_back();
    if (const auto* leaf =
            dynamic_cast<const torch::autograd::AccumulateGrad*>(node)) {
      leaves.push_back(leaf->variable);
    }
    for (const torch::autograd::Edge& edge : node->next_edges()) {
      add(edge.function.get());
    }
  }
  return leaves;
}

// Checks that all leaves below `results`, the tensors of a head, are among
// `parameters`. Looks no further than to `ends`: the encoder's part of the
// graph may have leaves of its own.
void CheckLeaves(const std::vector<torch::Tensor>& results,
                 const AutogradNodes& ends,
                 const std::vector<torch::Tensor>& parameters) {
  std::set<const c10::TensorImpl*> known;
  for (const torch::Tensor& parameter : parameters) {
    known.insert(parameter.unsafeGetTensorImpl());
  }
  for (const torch::Tensor& leaf : LeavesBelow(results, ends)) {
    TORCH_CHECK(known.count(leaf.unsafeGetTensorImpl()) > 0,
                "the head uses a tensor ", leaf.sizes(),
                " that is no parameter, and so is neither trained nor saved: "
                "it should be registered (register_module, "
                "register_parameter)");
  }
}

}  // namespace

OutputRows RowsFor(ReadTokens tokens, const Batch& batch) {
  const torch::Tensor& globals = batch.input.global_token_ids;  // [B, G]
  const torch::Tensor none = torch::empty({0}, globals.options());
  switch (tokens) {
    case ReadTokens::kAll:
      break;
    case ReadTokens::kText:
      return batch.input.token_ids.size(1) == 0 ? OutputRows()
                                                : OutputRows{.globals = none};
    case ReadTokens::kGlobal:
      return {.longs = none};
    case ReadTokens::kFirstGlobal:
      return {.longs = none,
              .globals = torch::arange(globals.size(0), globals.options()) *
                         globals.size(1)};
  }
  return {};
}

OutputCounts CountsFor(ReadTokens tokens, const StepShape& shape) {
  switch (tokens) {
    case ReadTokens::kAll:
      break;
    case ReadTokens::kText:
      return shape.long_length == 0 ? OutputCounts()
                                    : OutputCounts{.globals = 0};
    case ReadTokens::kGlobal:
      return {.longs = 0};
    case ReadTokens::kFirstGlobal:
      return {.longs = 0, .globals = 1};
  }
  return {};
}

EtcInput OutputHead::EncoderInput(const Batch& batch) {
  EtcInput input = batch.input;
  const EmbeddingAdders adders = Adders(batch);
  input.long_embedding_adder = adders.long_adder;
  input.global_embedding_adder = adders.global_adder;
  return input;
}

HeadCost OutputHead::CostOf(const StepShape& update) const {
  return {.outputs = CountsFor(Reads(), update)};
}

std::vector<torch::Tensor> OutputHead::Run(EtcModel encoder,
                                           const Batch& batch) {
  EtcInput input = EncoderInput(batch);
  input.outputs = RowsFor(Reads(), batch);
  const EtcOutput encoded = encoder->forward(input);
  const std::vector<torch::Tensor> outputs = {encoded.long_output,
                                              encoded.global_output};
  const bool checks =
      !has_checked_graph_ && is_training() && torch::GradMode::is_enabled();
  // Found before the head can change the outputs in place.
  const AutogradNodes ends = checks ? NodesOf(outputs) : AutogradNodes();
  std::vector<torch::Tensor> logits =
      NamingPlace([this] { return PlaceIn(*this, "logits"); },
                  [&] { return forward(encoded, batch); });
  if (checks) {
    TORCH_CHECK(AnyRequiresGrad(logits) || !AnyRequiresGrad(outputs),
                "the head's logits should have a gradient, but have none");
    std::vector<torch::Tensor> results = logits;
    results.push_back(input.long_embedding_adder);
    results.push_back(input.global_embedding_adder);
    std::vector<torch::Tensor> known = encoder->parameters();
    const std::vector<torch::Tensor> own = parameters();
    known.insert(known.end(), own.begin(), own.end());
    CheckLeaves(results, ends, known);
    has_checked_graph_ = true;
  }
  return logits;
}

LossTotals OutputHead::Totals(const Examples& examples) const {
  return {static_cast<double>(examples.size())};
}

torch::Tensor OutputHead::Loss(const std::vector<torch::Tensor>& logits,
                               const Batch& batch, const LossTotals& totals) {
  const torch::Tensor losses =  // [B]
      NamingPlace([this] { return PlaceIn(*this, "losses"); },
                  [&] { return Losses(logits, batch); });
  TORCH_CHECK(losses.dim() == 1 && losses.size(0) == batch.size(),
              "a head's losses should have shape [", batch.size(),
              "], but have ", losses.sizes());
  // A constant 0 says that nothing is asked of these examples.
  TORCH_CHECK(losses.requires_grad() || !torch::GradMode::is_enabled() ||
                  !AnyRequiresGrad(logits) || !losses.any().item<bool>(),
              "the head's losses should have a gradient, as its logits have, "
              "but have none");
  return losses.sum() / (totals[0] + kOfficialEpsilon);
}

torch::Tensor CrossEntropies(const torch::Tensor& logits,
                             const torch::Tensor& targets) {
  return torch::cross_entropy_loss(logits, ToDevice(targets, logits.device()),
                                   /*weight=*/{}, at::Reduction::None);
}

torch::Tensor CrossEntropies(const torch::Tensor& logits,
                             const std::vector<int64_t>& targets) {
  return CrossEntropies(logits, torch::tensor(targets, torch::kInt64));
}

torch::nn::Linear RegisterHeadLinear(const std::string& name,
                                     const EtcConfig& encoder, int64_t outputs,
                                     torch::nn::Module* head) {
  return head->register_module(
      name, MakeLinear(encoder.hidden_size, outputs, kHeadInitializerRange));
}

}  // namespace etc
