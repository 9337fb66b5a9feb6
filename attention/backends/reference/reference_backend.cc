#include "attention/backends/reference/reference_backend.h"

#include <vector>

#include "attention/backends/reference/dense_attention.h"

namespace etc {
namespace {

// Indices of the windows of own keys in a dense [L, L] matrix, L queries and as
// many own keys.
struct WindowIndex {
  // [L, L] int64: the column w = j - i + r of pair (i, j), 0 where outside.
  torch::Tensor column;
  torch::Tensor in_window;  // [L, L] bool
  // [L, W] int64: the key j = i + w - r of column w, 0 where outside.
  torch::Tensor key;
  torch::Tensor in_sequence;  // [L, W] bool
};

WindowIndex MakeWindowIndex(int64_t length, int64_t radius,
                            const torch::Device& device) {
  const torch::TensorOptions options =
      torch::TensorOptions().dtype(torch::kInt64).device(device);
  const torch::Tensor position = torch::arange(length, options);
  const torch::Tensor column =
      position.unsqueeze(0) - position.unsqueeze(1) + radius;
  const torch::Tensor key =
      position.unsqueeze(1) +
      torch::arange(-radius, radius + 1, options).unsqueeze(0);
  WindowIndex index;
  index.in_window = column.ge(0).logical_and(column.le(2 * radius));
  index.column = column.masked_fill(index.in_window.logical_not(), 0);
  index.in_sequence = key.ge(0).logical_and(key.lt(length));
  index.key = key.masked_fill(index.in_sequence.logical_not(), 0);
  return index;
}

// Numbers for own keys between the layout of ScorePair and a dense matrix,
// which are the same without a window.
class OwnColumns {
 public:
  OwnColumns(const SoftmaxPattern& pattern, const torch::Device& device) {
    if (pattern.radius >= 0) {
      index_ = MakeWindowIndex(pattern.queries, pattern.radius, device);
    }
  }

  // [..., L, W] -> [..., L, L], 0 outside of the windows.
  torch::Tensor ToDense(const torch::Tensor& windows) const {
    if (!index_.key.defined()) {
      return windows;
    }
    std::vector<int64_t> shape = windows.sizes().vec();
    shape.back() = index_.column.size(1);
    return windows.gather(-1, index_.column.expand(shape))
        .masked_fill(index_.in_window.logical_not(), 0);
  }

  // [..., L, L] -> [..., L, W], 0 outside of the sequence.
  torch::Tensor FromDense(const torch::Tensor& dense) const {
    if (!index_.key.defined()) {
      return dense;
    }
    std::vector<int64_t> shape = dense.sizes().vec();
    shape.back() = index_.key.size(1);
    return dense.gather(-1, index_.key.expand(shape))
        .masked_fill(index_.in_sequence.logical_not(), 0);
  }

 private:
  WindowIndex index_;
};

}  // namespace

AttentionForward ReferenceBackend::Forward(
    const AttentionProblem& problem) const {
  const AttentionOperands& operands = problem.operands;
  const torch::Device device = operands.query.device();
  const SoftmaxMasks masks = problem.pattern.masks(device);
  const OwnColumns own(problem.pattern, device);
  // [..., T, own keys + other keys], or undefined
  const auto join = [&](const torch::Tensor& of_own,
                        const torch::Tensor& of_other) {
    return of_own.defined() ? torch::cat({own.ToDense(of_own), of_other}, -1)
                            : torch::Tensor();
  };
  const DenseAttentionOutput output = DenseAttention(
      {.query = operands.query,
       .key = torch::cat({operands.own_key, operands.other_key}, 2),
       .value = torch::cat({operands.own_value, operands.other_value}, 2),
       .mask = join(masks.own_mask, masks.other_mask),
       .relative_ids = join(masks.own_ids, masks.other_ids),
       .relative = operands.relative,
       .previous = join(problem.previous.own, problem.previous.other),
       .divisor = problem.divisor,
       .dropout = problem.dropout,
       .dropout_factors =
           join(problem.dropout_factors.own, problem.dropout_factors.other)});
  AttentionForward result = {.context = output.context};
  if (problem.carry) {
    const int64_t own_keys = operands.own_key.size(2);
    const int64_t other_keys = operands.other_key.size(2);
    result.scores = {
        .own = own.FromDense(output.scores.narrow(-1, 0, own_keys)),
        .other = output.scores.narrow(-1, own_keys, other_keys)};
  }
  return result;
}

}  // namespace etc
