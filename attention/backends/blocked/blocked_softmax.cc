#include "attention/backends/blocked/blocked_softmax.h"

#include <c10/util/Exception.h>

#include <cmath>

#include "attention/backends/blocked/windows.h"
#include "attention/backends/reference/dense_attention.h"

namespace etc {
namespace {

// [T, W], true where the window reaches beyond the sequence.
torch::Tensor KeysBeyondSequence(int64_t length, const KeyWindow& window,
                                 const torch::Device& device) {
  const torch::Tensor keys =
      torch::arange(length, device).unsqueeze(1) +
      torch::arange(-window.before, window.after + 1, device);
  return keys.lt(0).logical_or(keys.ge(length));
}

// q . E[id] + bias[id] for ids [B, T, columns].
torch::Tensor OfIds(const torch::Tensor& by_id, const torch::Tensor& ids) {
  return by_id.gather(-1, ids.unsqueeze(1).expand({-1, by_id.size(1), -1, -1}));
}

}  // namespace

ScorePair GatedLogits(const ScorePair& own, const ResidualGates& gates,
                      const ScorePair& previous) {
  // [N] -> [N, 1, 1]
  const auto logits = [](const torch::Tensor& score, const torch::Tensor& gate,
                         const torch::Tensor& below) {
    return torch::addcmul(score, gate.view({-1, 1, 1}), below);
  };
  return {.own = logits(own.own, gates.own, previous.own),
          .other = logits(own.other, gates.other, previous.other)};
}

BlockedSoftmax::BlockedSoftmax(const AttentionProblem& problem,
                               int64_t block_length)
    : pattern_(problem.pattern),
      block_length_(block_length),
      score_factor_(problem.score_factor),
      divisor_(problem.divisor),
      masks_(pattern_.masks(problem.operands.query.device())) {
  const torch::Tensor mask =
      torch::cat({masks_.own_mask, masks_.other_mask}, -1).unsqueeze(1);
  forbidden_ = mask.logical_not();
  sees_any_ = mask.any(-1, /*keepdim=*/true);
  forbidden_logit_ =
      ForbiddenLogit(sees_any_, ScoreType(problem.operands.query));
  if (has_window()) {
    beyond_ =
        KeysBeyondSequence(pattern_.queries, pattern_.window, mask.device());
  }
}

ScorePair BlockedSoftmax::Scores(const AttentionOperands& operands) const {
  // A product of 16 bits would round its result to as many: at scores of 160,
  // which sums over layers reach, to steps of 1.
  const torch::ScalarType type = ScoreType(operands.query);
  const torch::Tensor query = operands.query.to(type);
  const torch::Tensor own_key = operands.own_key.to(type);
  const auto product = [&](const torch::Tensor& a, const torch::Tensor& b) {
    return torch::matmul(a, b.transpose(-2, -1));
  };
  ScorePair scores;
  scores.other = product(query, operands.other_key.to(type));
  if (has_window()) {
    const torch::Tensor spans =  // [B, heads, blocks, b, b + W - 1]
        product(SplitIntoBlocks(query, block_length_),
                BlocksWithMargin(own_key, block_length_, pattern_.window));
    scores.own = JoinBlocks(UnskewElementsRight(spans), pattern_.queries);
  } else {
    scores.own = product(query, own_key);
  }
  if (masks_.own_ids.defined()) {
    TORCH_CHECK(operands.relative.embedding.defined(),
                "relative ids are given, but there is no relative table");
    const torch::Tensor by_id = RelativeScoresById(
        query, {.embedding = operands.relative.embedding.to(type),
                .bias = operands.relative.bias.to(type)});
    scores.own = scores.own + OfIds(by_id, masks_.own_ids);
    scores.other = scores.other + OfIds(by_id, masks_.other_ids);
  }
  const double scale =
      score_factor_ / std::sqrt(static_cast<double>(query.size(3)));
  scores.own = scores.own * scale;
  scores.other = scores.other * scale;
  if (has_window()) {
    scores.own = scores.own.masked_fill(beyond_, 0);
  }
  return scores;
}

torch::Tensor BlockedSoftmax::Context(const ScorePair& sums,
                                      const torch::Tensor& own_value,
                                      const torch::Tensor& other_value,
                                      const ScorePair& dropout_factors) const {
  torch::Tensor logits = torch::cat({sums.own, sums.other}, -1);
  if (divisor_ != 1.0) {
    logits = logits / divisor_;
  }
  torch::Tensor probabilities =
      torch::softmax(torch::where(forbidden_, forbidden_logit_, logits), -1);
  if (dropout_factors.defined()) {
    probabilities =
        probabilities *
        torch::cat({dropout_factors.own, dropout_factors.other}, -1);
  }
  const torch::ScalarType type = probabilities.scalar_type();
  const int64_t own_columns = pattern_.own_columns();
  const torch::Tensor own = probabilities.narrow(-1, 0, own_columns);
  const torch::Tensor of_own =
      has_window()
          ? JoinBlocks(
                torch::matmul(
                    SkewElementsRight(SplitIntoBlocks(own, block_length_)),
                    BlocksWithMargin(own_value.to(type), block_length_,
                                     pattern_.window)),
                pattern_.queries)
          : torch::matmul(own, own_value.to(type));
  const torch::Tensor context =
      of_own +
      torch::matmul(probabilities.narrow(-1, own_columns, pattern_.other_keys),
                    other_value.to(type));
  // Queries that see no key have equal probabilities, not 0.
  return (context * sees_any_.to(type)).to(own_value.scalar_type());
}

}  // namespace etc
