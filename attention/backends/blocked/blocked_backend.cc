#include "attention/backends/blocked/blocked_backend.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>

#include "attention/backends/blocked/windows.h"
#include "attention/backends/reference/dense_attention.h"
#include "attention/backends/reference/reference_backend.h"

namespace etc {
namespace {

// [L, W], true where the window reaches beyond the sequence.
torch::Tensor KeysBeyondSequence(int64_t length, int64_t radius,
                                 const torch::Device& device) {
  const torch::Tensor keys = torch::arange(length, device).unsqueeze(1) +
                             torch::arange(-radius, radius + 1, device);
  return keys.lt(0).logical_or(keys.ge(length));
}

// Adds the relative term to own [B, N, L, W] and other [B, N, L, G] products.
void AddRelativeScores(const AttentionOperands& operands,
                       const SoftmaxMasks& masks, ScorePair* products) {
  TORCH_CHECK(operands.relative.embedding.defined(),
              "relative ids are given, but there is no relative table");
  const int64_t heads = operands.query.size(1);
  const torch::Tensor by_id =
      RelativeScoresById(operands.query, operands.relative);
  const auto of = [&](const torch::Tensor& ids) {
    return by_id.gather(-1, ids.unsqueeze(1).expand({-1, heads, -1, -1}));
  };
  products->own = products->own + of(masks.own_ids);
  products->other = products->other + of(masks.other_ids);
}

// Previous and own scores, [B, N, L, W + G].
torch::Tensor Scores(const AttentionProblem& problem, const SoftmaxMasks& masks,
                     int64_t block) {
  const AttentionOperands& operands = problem.operands;
  const int64_t radius = problem.pattern.radius;
  const torch::Tensor spans =  // [B, N, blocks, b, b + 2r]
      torch::matmul(
          SplitIntoBlocks(operands.query, block),
          BlocksWithMargin(operands.own_key, block, radius).transpose(-2, -1));
  ScorePair products = {
      .own = JoinBlocks(UnskewElementsRight(spans), problem.pattern.queries),
      .other =
          torch::matmul(operands.query, operands.other_key.transpose(-2, -1))};
  if (masks.own_ids.defined()) {
    AddRelativeScores(operands, masks, &products);
  }
  const torch::Tensor scores =
      torch::cat({products.own, products.other}, -1) /
      std::sqrt(static_cast<double>(operands.query.size(3)));
  return problem.previous.defined()
             ? scores + torch::cat(
                            {problem.previous.own, problem.previous.other}, -1)
             : scores;
}

AttentionForward WindowedAttention(const AttentionProblem& problem,
                                   int64_t block) {
  const AttentionOperands& operands = problem.operands;
  const int64_t radius = problem.pattern.radius;
  const int64_t window = problem.pattern.own_columns();
  const int64_t length = problem.pattern.queries;
  const int64_t others = problem.pattern.other_keys;
  const SoftmaxMasks masks = problem.pattern.masks(operands.query.device());
  const torch::Tensor scores = Scores(problem, masks, block);

  const torch::Tensor mask =  // [B, 1, L, W + G]
      torch::cat({masks.own_mask, masks.other_mask}, -1).unsqueeze(1);
  torch::Tensor probabilities = torch::softmax(
      (problem.divisor == 1.0 ? scores : scores / problem.divisor)
          .masked_fill(mask.logical_not(), LowestScore(scores.scalar_type())),
      -1);
  probabilities =
      torch::dropout(probabilities, problem.dropout, problem.dropout > 0.0);

  const torch::Tensor own_probabilities =  // [B, N, blocks, b, b + 2r]
      SkewElementsRight(
          SplitIntoBlocks(probabilities.narrow(-1, 0, window), block));
  torch::Tensor context =  // [B, N, L, e]
      JoinBlocks(
          torch::matmul(own_probabilities,
                        BlocksWithMargin(operands.own_value, block, radius)),
          length) +
      torch::matmul(probabilities.narrow(-1, window, others),
                    operands.other_value);
  // Rows without any allowed key: their probabilities are equal, not 0.
  context = context * mask.any(-1, /*keepdim=*/true).to(context.dtype());
  AttentionForward result = {.context = context};
  if (problem.carry) {
    result.scores = {
        .own = scores.narrow(-1, 0, window)
                   .masked_fill(
                       KeysBeyondSequence(length, radius, scores.device()), 0),
        .other = scores.narrow(-1, window, others)};
  }
  return result;
}

}  // namespace

// A span of b + 2r keys for windows of 2r + 1 wastes the less the smaller b is,
// but matrix products want some rows.
int64_t DefaultBlockLength(int64_t local_radius) {
  return std::clamp<int64_t>(local_radius / 2, int64_t{16}, 64);
}

std::string BlockedBackend::UnsupportedReason(
    const AttentionProblem& problem) const {
  return problem.dropout_factors.defined() ? "dropout factors are given" : "";
}

AttentionForward BlockedBackend::Forward(
    const AttentionProblem& problem) const {
  const int64_t radius = problem.pattern.radius;
  if (radius < 0) {
    // Nothing to leave out: in ETC's layers the global queries, whose scores,
    // [G, G + L], are linear in L already.
    return ReferenceBackend().Forward(problem);
  }
  return WindowedAttention(problem, options_.block_length > 0
                                        ? options_.block_length
                                        : DefaultBlockLength(radius));
}

}  // namespace etc
