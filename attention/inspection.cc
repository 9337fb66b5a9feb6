// The definition of attention on chosen rows and heads, a few rows at a time.

#include "attention/inspection.h"

#include "attention/attention_problem.h"
#include "attention/backends/reference/dense_attention.h"
#include "attention/row_blocks.h"

namespace etc {
namespace {

class Inspector {
 public:
  Inspector(const AttentionProblem& problem, const SoftmaxSelection& which)
      : problem_(problem),
        has_rows_(which.rows.defined()),
        blocks_(problem, which.heads, which.rows) {
    if (which.probabilities) {
      view_.probabilities = New();
    }
    if (which.scores) {
      view_.new_scores = New();
      view_.carried_scores = problem.previous.defined() ? New() : ScorePair();
    }
  }

  SoftmaxView Run() {
    blocks_.ForEach([this](const RowBlock& block) { Add(block); });
    const AttentionSizes& sizes = blocks_.sizes();
    for (ScorePair* pair :
         {&view_.probabilities, &view_.new_scores, &view_.carried_scores}) {
      pair->ForEachTensor([&](torch::Tensor& tensor) {
        if (tensor.defined() && !has_rows_) {
          tensor = tensor
                       .reshape({sizes.batch, sizes.queries, tensor.size(1),
                                 tensor.size(2)})
                       .transpose(1, 2);
        }
      });
    }
    return view_;
  }

 private:
  // Uninitialised, [R, H, columns].
  ScorePair New() const {
    const auto columns = [&](int64_t count) {
      return torch::empty(
          {blocks_.num_rows(), blocks_.num_heads(), count},
          problem_.operands.query.options().dtype(blocks_.dtype()));
    };
    return {.own = columns(blocks_.sizes().own_columns),
            .other = columns(blocks_.sizes().other_keys)};
  }

  void Add(const RowBlock& block) {
    const DenseAttentionInput& input = block.input;
    const torch::Tensor hidden = input.mask.logical_not().unsqueeze(1);
    // `numbers` is [1, H, n, own + other keys].
    const auto put = [&](const torch::Tensor& numbers, const ScorePair& into) {
      if (into.defined()) {
        const torch::Tensor rows = numbers.masked_fill(hidden, 0.0)[0];
        torch::Tensor(into.own).index_copy_(
            0, block.places,
            block.columns.FromDense(rows.narrow(-1, 0, block.own_keys))
                .transpose(0, 1));
        torch::Tensor(into.other)
            .index_copy_(
                0, block.places,
                rows.narrow(-1, block.own_keys, blocks_.sizes().other_keys)
                    .transpose(0, 1));
      }
    };
    const torch::Tensor own_scores = DenseScores(input);
    put(own_scores, view_.new_scores);
    if (input.previous.defined()) {
      put(input.previous, view_.carried_scores);
    }
    put(DenseProbabilities(input, DenseLogitsOf(input, own_scores).logits),
        view_.probabilities);
  }

  const AttentionProblem& problem_;
  const bool has_rows_;
  RowBlocks blocks_;
  SoftmaxView view_;
};

}  // namespace

SoftmaxView InspectAttention(const SparseAttentionInput& input,
                             const SoftmaxSelection& which) {
  const torch::NoGradGuard no_grad;
  const AttentionProblem problem = MakeAttentionProblem(input);
  if (problem.pattern.runs != nullptr) {
    CheckRelativeTable(problem);
  }
  return Inspector(problem, which).Run();
}

}  // namespace etc
