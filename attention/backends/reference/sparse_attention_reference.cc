// The definition of sparse attention, on dense matrices.

#include <c10/util/Exception.h>

#include <utility>

#include "attention/backends/joint_softmax.h"
#include "attention/backends/reference/dense_attention.h"
#include "attention/sparse_attention.h"
#include "base/check_shape.h"

namespace etc {
namespace {

// Where the l2l windows lie in a dense [L, L] matrix.
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

// [..., L, W] -> [..., L, L], 0 outside of the windows.
torch::Tensor WindowsToDense(const torch::Tensor& windows,
                             const WindowIndex& index) {
  std::vector<int64_t> shape = windows.sizes().vec();
  shape.back() = index.column.size(1);
  return windows.gather(-1, index.column.expand(shape))
      .masked_fill(index.in_window.logical_not(), 0);
}

// [..., L, L] -> [..., L, W], 0 outside of the sequence.
torch::Tensor DenseToWindows(const torch::Tensor& dense,
                             const WindowIndex& index) {
  std::vector<int64_t> shape = dense.sizes().vec();
  shape.back() = index.key.size(1);
  return dense.gather(-1, index.key.expand(shape))
      .masked_fill(index.in_sequence.logical_not(), 0);
}

SparseAttentionOutput LongAttention(const SparseAttentionInput& input) {
  const int64_t length = input.query.size(2);
  const int64_t others = input.other_key.size(2);
  const ExplicitInputs tensors =
      input.attention->Tensors(input.query.size(0), length, others,
                               input.local_radius, input.query.device());
  const WindowIndex index =
      MakeWindowIndex(length, input.local_radius, input.query.device());

  DenseAttentionInput dense = JointKeys(input);
  dense.mask = torch::cat(
      {WindowsToDense(tensors.l2l_mask, index), tensors.l2g_mask}, -1);
  if (tensors.l2l_ids.defined()) {
    dense.relative_ids = torch::cat(
        {WindowsToDense(tensors.l2l_ids, index), tensors.l2g_ids}, -1);
  }
  if (input.own_previous.defined()) {
    dense.previous = torch::cat(
        {WindowsToDense(input.own_previous, index), input.other_previous}, -1);
  }
  if (input.own_dropout_factors.defined()) {
    dense.dropout_factors =
        torch::cat({WindowsToDense(input.own_dropout_factors, index),
                    input.other_dropout_factors},
                   -1);
  }
  const DenseAttentionOutput output = DenseAttention(dense);
  if (input.residual == ResidualAttention::kOff) {
    return {.context = output.context};
  }
  return {
      .context = output.context,
      .own_scores = DenseToWindows(output.scores.narrow(-1, 0, length), index),
      .other_scores = output.scores.narrow(-1, length, others)};
}

}  // namespace

SparseAttentionOutput ReferenceSparseAttention(
    const SparseAttentionInput& input) {
  CheckSparseAttentionShapes(input);
  return input.side == QuerySide::kLong ? LongAttention(input)
                                        : GlobalAttention(input);
}

}  // namespace etc
