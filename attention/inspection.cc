// The definition of attention on chosen rows and heads, a few rows at a time.

#include "attention/inspection.h"

#include "attention/attention_problem.h"
#include "attention/backends/reference/dense_attention.h"
#include "attention/row_blocks.h"

namespace etc {
namespace {

class Inspector {
 public:
  // With `has_run` the problem's previous scores are those that the layer
  // carried on.
  Inspector(const AttentionProblem& problem, const SoftmaxSelection& which,
            bool has_run)
      : problem_(problem),
        has_run_(has_run),
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
    DenseAttentionInput input = block.input;
    const torch::Tensor own_scores = DenseScores(input);
    if (has_run_ && input.previous.defined()) {
      input.previous =
          input.previous.sub(own_scores, /*alpha=*/input.score_factor);
    }
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
    put(own_scores, view_.new_scores);
    if (input.previous.defined()) {
      put(input.previous, view_.carried_scores);
    }
    put(DenseProbabilities(input, DenseLogitsOf(input, own_scores).logits),
        view_.probabilities);
  }

  const AttentionProblem& problem_;
  const bool has_run_;
  const bool has_rows_;
  RowBlocks blocks_;
  SoftmaxView view_;
};

SoftmaxView Inspect(const SparseAttentionInput& input,
                    const SoftmaxSelection& which, bool has_run) {
  const torch::NoGradGuard no_grad;
  const AttentionProblem problem = MakeAttentionProblem(input);
  return Inspector(problem, which, has_run).Run();
}

}  // namespace

SoftmaxView InspectAttention(const SparseAttentionInput& input,
                             const SoftmaxSelection& which) {
  return Inspect(input, which, /*has_run=*/false);
}

SoftmaxView InspectPastAttention(const SparseAttentionInput& input,
                                 const SoftmaxSelection& which) {
  SparseAttentionInput given = input;
  if (given.previous.layers == 1) {
    given.previous = {};  // the first layer was given nothing
  }
  if (given.previous.defined()) {
    --given.previous.layers;
  }
  return Inspect(given, which, /*has_run=*/true);
}

}  // namespace etc
