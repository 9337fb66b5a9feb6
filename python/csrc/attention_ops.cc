// torch.ops.realetc: sparse attention as pairs of operations, forward and
// backward, without autograd: python/realetc/_operations.py joins them, and
// says what torch.compile has to know of their results.

#include <ATen/core/TensorBase.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>
#include <omp.h>
#include <torch/library.h>
#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "attention/attention_problem.h"
#include "attention/backends/backend.h"
#include "attention/backends/blocked/blocked_backend.h"
#include "attention/backends/cpu/cpu_backend.h"
#include "attention/backends/tensor_layout.h"
#include "attention/sparse_attention.h"
#include "python/csrc/pattern_arguments.h"

namespace etc {
namespace {

using MaybeTensor = std::optional<torch::Tensor>;

torch::Tensor OrUndefined(const MaybeTensor& tensor) {
  return tensor.value_or(torch::Tensor());
}

// One softmax, with the backend that computes it: the kernels for float32 on
// the CPU, where the pattern is runs of keys, else blocks of tensor operations.
struct Call {
  Call(const SparseAttentionInput& input, const torch::Tensor& seed)
      : problem(MakeAttentionProblem(input)), backend(PickBackend(problem)) {
    const torch::ScalarType type = problem.operands.query.scalar_type();
    // Gradients have the strides of the operands: the same of all backends.
    problem.operands.ForEachTensor([&](torch::Tensor& tensor) {
      if (tensor.defined()) {
        TORCH_CHECK(tensor.scalar_type() == type, "query is ", type,
                    ", but another operand ", tensor.scalar_type());
        tensor = WithAdjacentElements(tensor);
      }
    });
    if (problem.dropout > 0.0) {
      TORCH_CHECK(seed.defined() && seed.numel() == 1 &&
                      seed.scalar_type() == torch::kInt64,
                  "dropout needs a seed, one int64");
      problem.dropout_seed = static_cast<uint64_t>(seed.item<int64_t>());
    }
    backend.Prepare(&problem);
  }

  static const FusedBackend& PickBackend(const AttentionProblem& problem) {
    static const CpuBackend cpu;
    static const BlockedBackend blocked;
    if (problem.operands.query.scalar_type() == torch::kFloat32 &&
        cpu.UnsupportedReason(problem).empty()) {
      return cpu;
    }
    return blocked;
  }

  AttentionProblem problem;
  const FusedBackend& backend;
};

// An operation is called below autograd, which the blocked backend uses within,
// and perhaps inside of autocast, which would round that backend's scores.
class DispatchAsOutside {
 public:
  DispatchAsOutside()
      : guard_(c10::impl::tls_local_dispatch_key_set().included_,
               (c10::impl::tls_local_dispatch_key_set().excluded_ |
                c10::autocast_dispatch_keyset) -
                   c10::autograd_dispatch_keyset_with_ADInplaceOrView) {}

 private:
  c10::impl::ForceDispatchKeyGuard guard_;
};

// The arguments that both passes have (Schema).
SparseAttentionInput InputOf(
    const torch::Tensor& query, const torch::Tensor& own_key,
    const torch::Tensor& own_value, const torch::Tensor& other_key,
    const torch::Tensor& other_value, const MaybeTensor& relative_embedding,
    const MaybeTensor& relative_bias, const MaybeTensor& own_gate,
    const MaybeTensor& other_gate, const PatternArguments& pattern,
    const std::string& residual, int64_t layers, double decay, double dropout) {
  for (const torch::Tensor* tensor : {&query, &own_key, &other_key}) {
    TORCH_CHECK(tensor->dim() == 4,
                "queries and keys should be [batch, heads, length, head_dim], "
                "but one is ",
                tensor->sizes());
  }
  SparseAttentionInput input = {
      .operands = {.query = query,
                   .own_key = own_key,
                   .own_value = own_value,
                   .other_key = other_key,
                   .other_value = other_value,
                   .relative = {.embedding = OrUndefined(relative_embedding),
                                .bias = OrUndefined(relative_bias)}},
      .pattern = PatternOf(pattern, {.batch = query.size(0),
                                     .queries = query.size(2),
                                     .own_keys = own_key.size(2),
                                     .other_keys = other_key.size(2)}),
      .residual = {.mode = ResidualAttentionFromName(residual), .decay = decay},
      .gates = {.own = OrUndefined(own_gate), .other = OrUndefined(other_gate)},
      .dropout = dropout};
  input.previous.layers = layers;
  return input;
}

using ForwardResults = std::tuple<torch::Tensor, torch::Tensor, torch::Tensor,
                                  torch::Tensor, torch::Tensor>;

ForwardResults Forward(
    const torch::Tensor& query, const torch::Tensor& own_key,
    const torch::Tensor& own_value, const torch::Tensor& other_key,
    const torch::Tensor& other_value, const MaybeTensor& relative_embedding,
    const MaybeTensor& relative_bias, const MaybeTensor& own_gate,
    const MaybeTensor& other_gate, const MaybeTensor& seed,
    const MaybeTensor& first, const MaybeTensor& second,
    at::IntArrayRef pattern, const std::string& residual, int64_t layers,
    double decay, double dropout, const MaybeTensor& own_previous,
    const MaybeTensor& other_previous) {
  const torch::NoGradGuard no_grad;
  const DispatchAsOutside dispatch;
  SparseAttentionInput input =
      InputOf(query, own_key, own_value, other_key, other_value,
              relative_embedding, relative_bias, own_gate, other_gate,
              {pattern, OrUndefined(first), OrUndefined(second)}, residual,
              layers, decay, dropout);
  input.previous.own = OrUndefined(own_previous);
  input.previous.other = OrUndefined(other_previous);
  Call call(input, OrUndefined(seed));
  if (call.problem.carry) {
    call.problem.carried = call.backend.NewScores(call.problem);
  }
  AttentionForward result = call.backend.Forward(call.problem);
  if (result.saved.empty()) {  // the blocked backend keeps nothing
    result.saved.assign(
        2, query.new_zeros({query.size(0), query.size(1), query.size(2)},
                           torch::kFloat32));
    result.saved[1] = result.saved[1].clone();
  }
  if (!call.problem.carry) {
    result.scores = {.own = query.new_empty({0}, torch::kFloat32),
                     .other = query.new_empty({0}, torch::kFloat32)};
  }
  return {result.context, result.scores.own, result.scores.other,
          result.saved[0], result.saved[1]};
}

std::vector<torch::Tensor> Backward(
    const torch::Tensor& query, const torch::Tensor& own_key,
    const torch::Tensor& own_value, const torch::Tensor& other_key,
    const torch::Tensor& other_value, const MaybeTensor& relative_embedding,
    const MaybeTensor& relative_bias, const MaybeTensor& own_gate,
    const MaybeTensor& other_gate, const MaybeTensor& seed,
    const MaybeTensor& first, const MaybeTensor& second,
    at::IntArrayRef pattern, const std::string& residual, int64_t layers,
    double decay, double dropout, const torch::Tensor& context,
    const torch::Tensor& own_scores, const torch::Tensor& other_scores,
    const torch::Tensor& row_max, const torch::Tensor& row_inverse_sum,
    const MaybeTensor& context_gradient, const MaybeTensor& own_gradient,
    const MaybeTensor& other_gradient, bool previous_gradient) {
  const torch::NoGradGuard no_grad;
  const DispatchAsOutside dispatch;
  SparseAttentionInput input =
      InputOf(query, own_key, own_value, other_key, other_value,
              relative_embedding, relative_bias, own_gate, other_gate,
              {pattern, OrUndefined(first), OrUndefined(second)}, residual,
              layers, decay, dropout);
  if (layers > 0) {
    // In place of the previous scores, whose shapes they have, and whose values
    // no backward pass needs.
    input.previous.own = own_scores;
    input.previous.other = other_scores;
  }
  Call call(input, OrUndefined(seed));
  AttentionProblem& problem = call.problem;
  problem.previous = {};
  ScoreGradients scores;
  if (problem.carry) {
    problem.carried = {.own = own_scores.contiguous(),
                       .other = other_scores.contiguous()};
    scores.carried = {.own = OrUndefined(own_gradient),
                      .other = OrUndefined(other_gradient)};
    if (layers > 0 && previous_gradient) {
      scores.previous = call.backend.NewScores(problem);
    }
  }
  AttentionGradients gradients = call.backend.Backward(
      problem, {.context = context, .saved = {row_max, row_inverse_sum}},
      OrUndefined(context_gradient), scores);
  if (!problem.operands.relative.embedding.defined() &&
      relative_embedding.has_value() && relative_bias.has_value()) {
    // A table that no pair reads, as in an empty batch, is no operand.
    const auto zeros = [](const torch::Tensor& table) {
      return torch::zeros_like(WithAdjacentElements(table));
    };
    gradients.operands.relative = {.embedding = zeros(*relative_embedding),
                                   .bias = zeros(*relative_bias)};
  }
  std::vector<torch::Tensor> all;
  const auto add = [&](const torch::Tensor& gradient) {
    if (gradient.defined()) {
      all.push_back(gradient);
    }
  };
  gradients.operands.ForEachTensor(add);
  gradients.gates.ForEachTensor(add);
  scores.previous.ForEachTensor(add);
  return all;
}

using MaskResults =
    std::tuple<torch::Tensor, torch::Tensor, torch::Tensor, torch::Tensor>;

// Masks and relative ids of a pattern as tensors: own mask and ids, other mask
// and ids, shaped as the masks; without relative positions [0] int64. Not a
// list, which torch.func.vmap does not take.
MaskResults Masks(const torch::Tensor& query, int64_t own_keys,
                  int64_t other_keys, const MaybeTensor& first,
                  const MaybeTensor& second, at::IntArrayRef pattern) {
  TORCH_CHECK(query.dim() == 4,
              "query should be [batch, heads, length, head_dim], but is ",
              query.sizes());
  const PatternArguments arguments = {pattern, OrUndefined(first),
                                      OrUndefined(second)};
  const SoftmaxPattern softmax =
      PatternOf(arguments, {.batch = query.size(0),
                            .queries = query.size(2),
                            .own_keys = own_keys,
                            .other_keys = other_keys});
  const SoftmaxMasks masks = softmax.masks(query.device());
  // An empty batch may have no ids, but has them for the graph.
  const auto ids = [&](const torch::Tensor& given, const torch::Tensor& mask) {
    if (given.defined()) {
      return given.clone(at::MemoryFormat::Contiguous);
    }
    return arguments.max_distance() > 0
               ? mask.new_zeros(mask.sizes(), torch::kInt64)
               : query.new_empty({0}, torch::kInt64);
  };
  return {masks.own_mask.clone(at::MemoryFormat::Contiguous),
          ids(masks.own_ids, masks.own_mask),
          masks.other_mask.clone(at::MemoryFormat::Contiguous),
          ids(masks.other_ids, masks.other_mask)};
}

std::string FileOf(const void* symbol) {
  Dl_info info;
  return symbol != nullptr && dladdr(symbol, &info) != 0 ? info.dli_fname : "";
}

// The files whose OpenMP the kernels and LibTorch call.
std::vector<std::string> OpenMpLibraries() {
  void* const torch_cpu = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  TORCH_CHECK(torch_cpu != nullptr, "libtorch_cpu.so is not loaded");
  const std::string of_torch = FileOf(dlsym(torch_cpu, "omp_get_max_threads"));
  dlclose(torch_cpu);
  return {FileOf(reinterpret_cast<const void*>(&omp_get_max_threads)),
          of_torch};
}

// A schema whose parameters begin with those of both passes. A SymInt, which
// arrives as int64_t, may vary within a graph of torch.compile.
std::string Schema(const std::string& name, const std::string& parameters,
                   const std::string& results) {
  return name +
         "(Tensor query, Tensor own_key, Tensor own_value, Tensor other_key, "
         "Tensor other_value, Tensor? relative_embedding, Tensor? "
         "relative_bias, Tensor? own_gate, Tensor? other_gate, Tensor? seed, "
         "Tensor? first, Tensor? second, int[] pattern, str residual, SymInt "
         "layers, float decay, float dropout, " +
         parameters + ") -> " + results;
}

}  // namespace
}  // namespace etc

TORCH_LIBRARY(realetc, library) {
  library.def(
      etc::Schema("attention_forward",
                  "Tensor? own_previous, Tensor? other_previous",
                  "(Tensor context, Tensor own_scores, Tensor other_scores, "
                  "Tensor row_max, Tensor row_inverse_sum)")
          .c_str());
  library.def(
      etc::Schema("attention_backward",
                  "Tensor context, Tensor own_scores, Tensor other_scores, "
                  "Tensor row_max, Tensor row_inverse_sum, Tensor? "
                  "context_gradient, Tensor? own_gradient, Tensor? "
                  "other_gradient, bool previous_gradient",
                  "Tensor[]")
          .c_str());
  library.def(
      "masks(Tensor query, SymInt own_keys, SymInt other_keys, Tensor? first, "
      "Tensor? second, int[] pattern) -> (Tensor own_mask, Tensor own_ids, "
      "Tensor other_mask, Tensor other_ids)");
  library.def("openmp_libraries() -> str[]", &etc::OpenMpLibraries);
}

TORCH_LIBRARY_IMPL(realetc, CompositeExplicitAutograd, library) {
  library.impl("attention_forward", &etc::Forward);
  library.impl("attention_backward", &etc::Backward);
  library.impl("masks", &etc::Masks);
}
