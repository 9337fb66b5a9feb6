#ifndef ETC_TESTS_SUPPORT_ATTENTION_STACK_H_
#define ETC_TESTS_SUPPORT_ATTENTION_STACK_H_

// Layers of sparse attention over random inputs, each carrying scores to the
// next: the tests of the kernels compare these between backends.

#include <torch/autograd.h>
#include <torch/types.h>

#include <vector>

#include "attention/sparse_attention.h"
#include "tests/support/attention_case.h"

namespace etc {

// The layers of one side.
struct AttentionStack {
  AttentionStack(const AttentionCase& c, QuerySide side,
                 const AttentionInputs& attention) {
    const int64_t own = side == QuerySide::kLong ? c.longs : c.globals;
    const int64_t other = side == QuerySide::kLong ? c.globals : c.longs;
    // Tokens' heads lie side by side, as projections leave them.
    const auto leaf = [&](int64_t length, int64_t size) {
      return torch::randn({2, length, c.heads, size}).transpose(1, 2);
    };
    for (int64_t layer = 0; layer < c.layers; ++layer) {
      SparseAttentionInput input;
      AttentionOperands& operands = input.operands;
      operands.query = leaf(own, c.head_dim);
      operands.own_key = leaf(own, c.head_dim);
      operands.own_value = leaf(own, c.value_dim);
      operands.other_key = leaf(other, c.head_dim);
      operands.other_value = leaf(other, c.value_dim);
      if (c.distance > 0) {
        operands.relative = {
            .embedding =
                torch::randn({2 * c.distance + 5, c.heads, c.head_dim}) * 0.5,
            .bias = torch::randn({2 * c.distance + 5, c.heads})};
      }
      input.pattern = attention.Softmax(side, 2, c.longs, c.globals, c.radius);
      input.residual.mode = c.residual;
      input.residual.decay = 0.6;
      if (c.residual == ResidualAttention::kGate && layer > 0) {
        input.gates = {.own = torch::randn({c.heads}),
                       .other = torch::randn({c.heads})};
      }
      input.dropout = c.dropout;
      layers.push_back(input);
    }
  }

  // The same values as new leaves of another type, on `device`.
  AttentionStack As(torch::ScalarType dtype,
                    const torch::Device& device = torch::kCPU) const {
    AttentionStack copy = *this;
    for (SparseAttentionInput& input : copy.layers) {
      for (torch::Tensor* tensor : Tensors(&input)) {
        *tensor =
            tensor->detach().to(device, dtype).clone().requires_grad_(true);
      }
    }
    return copy;
  }

  // Operands and gates.
  static std::vector<torch::Tensor*> Tensors(SparseAttentionInput* input) {
    std::vector<torch::Tensor*> all;
    const auto add = [&](torch::Tensor& tensor) {
      if (tensor.defined()) {
        all.push_back(&tensor);
      }
    };
    input->operands.ForEachTensor(add);
    input->gates.ForEachTensor(add);
    return all;
  }

  std::vector<SparseAttentionInput> layers;
};

// On the CPU.
struct StackResult {
  std::vector<torch::Tensor> Tensors() const {
    std::vector<torch::Tensor> all = outputs;
    all.insert(all.end(), gradients.begin(), gradients.end());
    return all;
  }

  std::vector<torch::Tensor> outputs;
  std::vector<torch::Tensor> gradients;
};

// A copy on the CPU, without gradient; undefined if `tensor` is.
inline torch::Tensor OnCpu(const torch::Tensor& tensor) {
  return tensor.defined() ? tensor.detach().to(torch::kCPU).clone() : tensor;
}

// A float64 scalar in which each element of output `n` of a stack has a part of
// its own.
inline torch::Tensor WeightedSum(const torch::Tensor& output, size_t n) {
  const torch::Tensor weights =
      torch::arange(
          output.numel(),
          output.options().dtype(torch::kFloat64).requires_grad(false))
          .add(static_cast<double>(n))
          .cos();
  return (output.reshape(-1).to(torch::kFloat64) * weights).sum();
}

// Outputs of all layers, each carrying to the next, scores where they count,
// and the gradients of a scalar in which every output has a part.
inline StackResult RunLayers(AttentionStack* stack,
                             AttentionImplementation implementation,
                             ScoreStorage storage = ScoreStorage::kStore) {
  StackResult result;
  std::vector<torch::Tensor> leaves;
  SparseAttentionOutput below;
  torch::Tensor scalar = torch::zeros({}, torch::kFloat64);
  const auto add = [&](const torch::Tensor& output) {
    result.outputs.push_back(OnCpu(output));
    scalar = scalar + WeightedSum(output, result.outputs.size());
  };
  for (SparseAttentionInput& layer : stack->layers) {
    for (torch::Tensor* tensor : AttentionStack::Tensors(&layer)) {
      leaves.push_back(*tensor);
    }
    SparseAttentionInput input = layer;
    input.previous = below.scores;
    input.residual.storage = storage;
    below = SparseAttention(input, implementation);
    add(below.context);
    if (below.scores.defined()) {
      const SoftmaxMasks masks = input.pattern.masks(below.context.device());
      add(*below.scores.own * masks.own_mask.unsqueeze(1));
      add(*below.scores.other * masks.other_mask.unsqueeze(1));
    }
  }
  result.gradients = torch::autograd::grad({scalar}, leaves, {}, c10::nullopt,
                                           false, /*allow_unused=*/true);
  for (torch::Tensor& gradient : result.gradients) {
    gradient = OnCpu(gradient);
  }
  return result;
}

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_ATTENTION_STACK_H_
