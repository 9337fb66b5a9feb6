#include "attention/backends/joint_softmax.h"

#include <c10/util/Exception.h>

#include "base/check_shape.h"

namespace etc {

void CheckSparseAttentionShapes(const SparseAttentionInput& input) {
  const int64_t batch = input.query.size(0);
  const int64_t heads = input.query.size(1);
  const int64_t queries = input.query.size(2);
  const int64_t head_dim = input.query.size(3);
  TORCH_CHECK(input.other_key.dim() == 4 && input.own_value.dim() == 4,
              "keys and values should be [batch, heads, length, head_dim]");
  const int64_t others = input.other_key.size(2);
  const int64_t value_dim = input.own_value.size(3);
  ETC_CHECK_SHAPE(input.own_key, {batch, heads, queries, head_dim});
  ETC_CHECK_SHAPE(input.own_value, {batch, heads, queries, value_dim});
  ETC_CHECK_SHAPE(input.other_key, {batch, heads, others, head_dim});
  ETC_CHECK_SHAPE(input.other_value, {batch, heads, others, value_dim});
  TORCH_CHECK(input.local_radius >= 1,
              "local_radius should be at least 1, but is ", input.local_radius);
  TORCH_CHECK(input.own_previous.defined() == input.other_previous.defined(),
              "previous scores should be defined for both blocks, or neither");
  if (input.own_previous.defined()) {
    TORCH_CHECK(input.residual != ResidualAttention::kOff,
                "previous scores are given, but residual attention is off");
    const int64_t own_keys =
        input.side == QuerySide::kLong ? 2 * input.local_radius + 1 : queries;
    ETC_CHECK_SHAPE(input.own_previous, {batch, heads, queries, own_keys});
    ETC_CHECK_SHAPE(input.other_previous, {batch, heads, queries, others});
  }
}

double ScoreDivisor(const SparseAttentionInput& input) {
  return input.residual == ResidualAttention::kMean
             ? static_cast<double>(input.layer + 1)
             : 1.0;
}

DenseAttentionInput JointKeys(const SparseAttentionInput& input) {
  return {.query = input.query,
          .key = torch::cat({input.own_key, input.other_key}, 2),
          .value = torch::cat({input.own_value, input.other_value}, 2),
          .relative = input.relative,
          .divisor = ScoreDivisor(input),
          .dropout = input.dropout};
}

SparseAttentionOutput GlobalAttention(const SparseAttentionInput& input) {
  const int64_t globals = input.query.size(2);
  const int64_t longs = input.other_key.size(2);
  const ExplicitInputs tensors =
      input.attention->Tensors(input.query.size(0), longs, globals,
                               input.local_radius, input.query.device());
  DenseAttentionInput dense = JointKeys(input);
  dense.mask = torch::cat({tensors.g2g_mask, tensors.g2l_mask}, -1);
  if (tensors.g2g_ids.defined()) {
    dense.relative_ids = torch::cat({tensors.g2g_ids, tensors.g2l_ids}, -1);
  }
  if (input.own_previous.defined()) {
    dense.previous = torch::cat({input.own_previous, input.other_previous}, -1);
  }
  if (input.own_dropout_factors.defined()) {
    dense.dropout_factors = torch::cat(
        {input.own_dropout_factors, input.other_dropout_factors}, -1);
  }
  const DenseAttentionOutput output = DenseAttention(dense);
  if (input.residual == ResidualAttention::kOff) {
    return {.context = output.context};
  }
  return {.context = output.context,
          .own_scores = output.scores.narrow(-1, 0, globals),
          .other_scores = output.scores.narrow(-1, globals, longs)};
}

}  // namespace etc
