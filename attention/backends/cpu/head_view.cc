#include "attention/backends/cpu/head_view.h"

#include "attention/backends/cpu/kernels/attention_tile.h"
#include "attention/backends/cpu/kernels/rounded_products.h"
#include "base/random.h"

namespace etc {
namespace {

kernels::KeyBlock BlockOf(const torch::Tensor& key, const torch::Tensor& value,
                          const BlockRuns& runs, int64_t batch, int64_t head) {
  return {.key = HeadRows(key, batch, head),
          .key_stride = key.stride(2),
          .value = HeadRows(value, batch, head),
          .value_stride = value.stride(2),
          .keys = key.size(2),
          .visible = runs.visible.View(),
          .rule = runs.rule,
          .special = runs.special.View()};
}

int64_t RowStride(const torch::Tensor& scores) {
  return scores.defined() ? scores.size(3) : 0;
}

}  // namespace

float* HeadRows(const torch::Tensor& tensor, int64_t batch, int64_t head) {
  if (!tensor.defined() || tensor.numel() == 0) {
    return nullptr;
  }
  return tensor.data_ptr<float>() + batch * tensor.stride(0) +
         head * tensor.stride(1);
}

kernels::ScoreRows<const float> ScoreRowsOf(const torch::Tensor& scores,
                                            int64_t batch, int64_t head) {
  return {HeadRows(scores, batch, head), RowStride(scores)};
}

kernels::ScoreRows<float> ScoreRowsToWrite(const torch::Tensor& scores,
                                           int64_t batch, int64_t head) {
  return {HeadRows(scores, batch, head), RowStride(scores)};
}

float* VectorOfHead(const torch::Tensor& tensor, int64_t batch, int64_t head) {
  return tensor.data_ptr<float>() +
         (batch * tensor.size(1) + head) * tensor.size(2);
}

kernels::AttentionHead HeadOf(const AttentionProblem& problem, int64_t batch,
                              int64_t head) {
  const AttentionOperands& operands = problem.operands;
  const SoftmaxRuns& runs = (*problem.pattern.runs)[static_cast<size_t>(batch)];
  kernels::AttentionHead out = {
      .rounded = problem.precision == LinearPrecision::kBfloat16
                     ? kernels::FastestRoundedProducts()
                     : nullptr,
      .head_dim = operands.query.size(3),
      .value_dim = operands.own_value.size(3),
      .query = HeadRows(operands.query, batch, head),
      .query_stride = operands.query.stride(2),
      .blocks = {BlockOf(operands.own_key, operands.own_value, runs.own, batch,
                         head),
                 BlockOf(operands.other_key, operands.other_value, runs.other,
                         batch, head)},
      .score_factor = static_cast<float>(problem.score_factor),
      .divisor = static_cast<float>(problem.divisor),
      .dropout = problem.dropout,
      .dropout_seed = kernels::DropoutHeadSeed(problem.dropout_seed, batch,
                                               problem.first_head + head)};
  out.blocks[0].window = problem.pattern.window;
  if (problem.gates.defined()) {
    out.is_gated = true;
    out.gates[0] = problem.gates.own.data_ptr<float>()[head];
    out.gates[1] = problem.gates.other.data_ptr<float>()[head];
  }
  if (operands.relative.embedding.defined()) {
    const torch::Tensor& embedding = operands.relative.embedding;
    const torch::Tensor& bias = operands.relative.bias;
    out.max_distance = runs.max_distance;
    out.relative = embedding.data_ptr<float>() + head * embedding.stride(1);
    out.relative_stride = embedding.stride(0);
    out.relative_bias = bias.data_ptr<float>() + head;
    out.relative_bias_stride = bias.stride(0);
  }
  return out;
}

}  // namespace etc
