#include "attention/backends/reference/dense_attention.h"

#include <c10/util/Exception.h>

#include <cmath>
#include <limits>

#include "attention/attention_problem.h"
#include "base/check_shape.h"

namespace etc {
namespace {

// All but the values.
void CheckShapes(const DenseAttentionInput& input) {
  TORCH_CHECK(input.query.dim() == 4 && input.key.dim() == 4,
              "query and key should be [batch, heads, length, head_dim], but "
              "are ",
              input.query.sizes(), " and ", input.key.sizes());
  const int64_t batch = input.query.size(0);
  const int64_t heads = input.query.size(1);
  const int64_t queries = input.query.size(2);
  const int64_t head_dim = input.query.size(3);
  const int64_t keys = input.key.size(2);
  ETC_CHECK_SHAPE(input.key, {batch, heads, keys, head_dim});
  if (input.mask.defined()) {
    ETC_CHECK_SHAPE(input.mask, {batch, queries, keys});
  }
  if (input.relative_ids.defined()) {
    ETC_CHECK_SHAPE(input.relative_ids, {batch, queries, keys});
    TORCH_CHECK(input.relative.embedding.defined(),
                "relative ids are given, but there is no relative table");
  }
  if (input.previous.defined()) {
    ETC_CHECK_SHAPE(input.previous, {batch, heads, queries, keys});
  }
  if (input.gates.defined()) {
    ETC_CHECK_SHAPE(input.gates, {heads, keys});
    TORCH_CHECK(input.previous.defined() && input.divisor == 1.0,
                "gates need previous scores, and a divisor of 1");
  }
  if (input.dropout_factors.defined()) {
    ETC_CHECK_SHAPE(input.dropout_factors, {batch, heads, queries, keys});
  }
}

}  // namespace

torch::Tensor ForbiddenLogit(const torch::Tensor& sees_any,
                             torch::ScalarType dtype) {
  return torch::zeros(sees_any.sizes(), sees_any.options().dtype(dtype))
      .masked_fill(sees_any, -std::numeric_limits<double>::infinity());
}

torch::Tensor RelativeScoresById(const torch::Tensor& query,
                                 const RelativeTable& relative) {
  const int64_t ids = relative.embedding.size(0);
  ETC_CHECK_SHAPE(relative.embedding, {ids, query.size(1), query.size(3)});
  ETC_CHECK_SHAPE(relative.bias, {ids, query.size(1)});
  // [N, d, R] and [N, 1, R]
  return torch::matmul(query, relative.embedding.permute({1, 2, 0})) +
         relative.bias.t().unsqueeze(1);
}

torch::Tensor DenseScores(const DenseAttentionInput& input) {
  CheckShapes(input);
  const torch::ScalarType type = ScoreType(input.query);
  const torch::Tensor query = input.query.to(type);
  torch::Tensor scores =  // [B, N, queries, keys]
      torch::matmul(query, input.key.to(type).transpose(-2, -1));
  if (input.relative_ids.defined()) {
    const torch::Tensor by_id = RelativeScoresById(
        query, {.embedding = input.relative.embedding.to(type),
                .bias = input.relative.bias.to(type)});
    scores = scores + by_id.gather(-1, input.relative_ids.unsqueeze(1).expand(
                                           {-1, input.query.size(1), -1, -1}));
  }
  return scores / std::sqrt(static_cast<double>(input.query.size(3)));
}

DenseLogits DenseLogitsOf(const DenseAttentionInput& input,
                          const torch::Tensor& own_scores) {
  const torch::Tensor own =
      input.score_factor == 1.0 ? own_scores : own_scores * input.score_factor;
  const torch::Tensor scores =
      input.previous.defined() ? own + input.previous : own;
  torch::Tensor logits = scores;
  if (input.gates.defined()) {
    logits = own + input.gates.unsqueeze(1) * input.previous;
  } else if (input.divisor != 1.0) {
    logits = scores / input.divisor;
  }
  return {.scores = scores, .logits = logits};
}

torch::Tensor DenseProbabilities(const DenseAttentionInput& input,
                                 const torch::Tensor& logits) {
  if (!input.mask.defined()) {
    return torch::softmax(logits, -1);
  }
  const torch::Tensor forbidden = input.mask.logical_not().unsqueeze(1);
  const torch::Tensor sees_any =
      input.mask.any(-1, /*keepdim=*/true).unsqueeze(1);
  return torch::softmax(
             torch::where(forbidden,
                          ForbiddenLogit(sees_any, logits.scalar_type()),
                          logits),
             -1)
      .masked_fill(forbidden, 0.0);
}

DenseAttentionOutput DenseAttention(const DenseAttentionInput& input) {
  const torch::Tensor own_scores = DenseScores(input);
  TORCH_CHECK(input.value.dim() == 4,
              "value should be [batch, heads, length, head_dim], but is ",
              input.value.sizes());
  ETC_CHECK_SHAPE(input.value, {own_scores.size(0), own_scores.size(1),
                                own_scores.size(3), input.value.size(3)});
  const DenseLogits result = DenseLogitsOf(input, own_scores);
  torch::Tensor probabilities = DenseProbabilities(input, result.logits);
  if (input.dropout_factors.defined()) {
    probabilities = probabilities * input.dropout_factors;
  }
  return {.context = torch::matmul(probabilities,
                                   input.value.to(probabilities.scalar_type()))
                         .to(input.query.scalar_type()),
          .scores = result.scores};
}

}  // namespace etc
