#include "attention/backends/blocked/blocked_backend.h"

#include <torch/autograd.h>
#include <torch/utils.h>

#include <algorithm>
#include <vector>

#include "attention/backends/blocked/blocked_softmax.h"
#include "attention/backends/tensor_layout.h"
#include "attention/dropout_factors.h"
#include "attention/key_runs.h"
#include "attention/some_heads.h"
#include "base/large_pages.h"

namespace etc {
namespace {

// Operands, scores and contexts have heads as their axis 1, gates as axis 0.
torch::Tensor Part(const torch::Tensor& tensor, const HeadRange& heads) {
  return SomeHeads(tensor, 1, heads);
}

template <typename Tensors>
Tensors PartOfEach(const Tensors& all, const HeadRange& heads) {
  return SomeHeadsOfEach(all, 1, heads);
}

// Calls function(heads) for all heads of the problem, a few at a time.
template <typename Function>
void ForEachPart(const AttentionProblem& problem, int64_t scores_at_once,
                 const Function& function) {
  const AttentionSizes sizes(problem);
  const int64_t scores =
      sizes.batch * sizes.queries * (sizes.own_columns + sizes.other_keys);
  if (scores == 0) {
    return;
  }
  const int64_t step = std::max<int64_t>(1, scores_at_once / scores);
  for (int64_t begin = 0; begin < sizes.heads; begin += step) {
    function(HeadRange{begin, std::min(step, sizes.heads - begin)});
  }
}

// sum = previous + scores, or minus; undefined previous: zeros.
void Sum(const torch::Tensor& previous, const torch::Tensor& scores,
         bool subtract, torch::Tensor sum) {
  if (!previous.defined()) {
    sum.copy_(subtract ? scores.neg() : scores);
  } else if (subtract) {
    torch::sub_out(sum, previous, scores);
  } else {
    torch::add_out(sum, previous, scores);
  }
}

// into += sum of inner * previous over all but the heads; inner *= gate.
void ThroughGate(const torch::Tensor& gate, const torch::Tensor& previous,
                 const torch::Tensor& into, torch::Tensor inner) {
  torch::Tensor(into).add_((inner * previous).sum({0, 2, 3}));
  inner.mul_(gate.view({-1, 1, 1}));
}

void SumOf(const ScorePair& previous, const ScorePair& scores, bool subtract,
           const ScorePair& sum) {
  Sum(previous.own, scores.own, subtract, sum.own);
  Sum(previous.other, scores.other, subtract, sum.other);
}

torch::Tensor AsLeaf(const torch::Tensor& tensor) {
  return tensor.defined() ? tensor.detach().requires_grad_(true) : tensor;
}

// Adds the defined tensors of `part` to those of `into` that are defined.
void AddDefined(const torch::Tensor& into, const torch::Tensor& part) {
  if (into.defined() && part.defined()) {
    torch::Tensor(into).add_(part);
  }
}

AttentionGradients ZeroGradients(const AttentionProblem& problem) {
  AttentionGradients zeros = {.operands = problem.operands,
                              .gates = problem.gates};
  const auto clear = [](torch::Tensor& tensor) {
    if (tensor.defined()) {
      tensor = torch::zeros_like(tensor);
    }
  };
  zeros.operands.ForEachTensor(clear);
  zeros.gates.ForEachTensor(clear);
  return zeros;
}

// The gradients of some heads: of their operands, added to zeros, and of the
// scores of the layer.
class PartGradients {
 public:
  PartGradients(const BlockedSoftmax& softmax,
                const AttentionOperands& operands,
                const AttentionOperands& into)
      : softmax_(softmax), leaves_(operands), into_(into) {
    leaves_.ForEachTensor([](torch::Tensor& leaf) { leaf = AsLeaf(leaf); });
    const torch::AutoGradMode record(true);
    scores_ = softmax_.Scores(leaves_);
  }

  // The scores of this layer alone, detached from those below.
  ScorePair scores() const {
    return {.own = scores_.own.detach(), .other = scores_.other.detach()};
  }

  // Through the softmax: returns the gradients of the summed scores.
  ScorePair ThroughContext(const ScorePair& sums, const ScorePair& factors,
                           const torch::Tensor& context_gradient) {
    const ScorePair leaves = {.own = AsLeaf(sums.own),
                              .other = AsLeaf(sums.other)};
    torch::Tensor context;
    {
      const torch::AutoGradMode record(true);
      context = softmax_.Context(leaves, leaves_.own_value, leaves_.other_value,
                                 factors);
    }
    const auto gradients = torch::autograd::grad(
        {context},
        {leaves.own, leaves.other, leaves_.own_value, leaves_.other_value},
        {context_gradient.to(context.scalar_type())});
    AddDefined(into_.own_value, gradients[2]);
    AddDefined(into_.other_value, gradients[3]);
    return {.own = gradients[0], .other = gradients[1]};
  }

  // Through the scores of the layer, whose gradients are those of the sum.
  void ThroughScores(const ScorePair& gradient) {
    std::vector<torch::Tensor> leaves, into;
    const auto add = [&](const torch::Tensor& leaf, const torch::Tensor& sum) {
      if (leaf.defined()) {
        leaves.push_back(leaf);
        into.push_back(sum);
      }
    };
    add(leaves_.query, into_.query);
    add(leaves_.own_key, into_.own_key);
    add(leaves_.other_key, into_.other_key);
    add(leaves_.relative.embedding, into_.relative.embedding);
    add(leaves_.relative.bias, into_.relative.bias);
    // A table is not read if the masks have no ids.
    const auto gradients = torch::autograd::grad(
        {scores_.own, scores_.other}, leaves, {gradient.own, gradient.other},
        /*retain_graph=*/c10::nullopt, /*create_graph=*/false,
        /*allow_unused=*/true);
    for (size_t i = 0; i < leaves.size(); ++i) {
      AddDefined(into[i], gradients[i]);
    }
  }

 private:
  const BlockedSoftmax& softmax_;
  AttentionOperands leaves_;
  const AttentionOperands into_;
  ScorePair scores_;
};

// A span of b + W - 1 keys for windows of W wastes the less the smaller b is,
// but matrix products want some rows.
int64_t DefaultBlockLength(const KeyWindow& window) {
  return std::clamp<int64_t>(window.columns() / 4, int64_t{16}, 64);
}

}  // namespace

int64_t BlockedBackend::BlockLength(const AttentionProblem& problem) const {
  return options_.block_length > 0 ? options_.block_length
                                   : DefaultBlockLength(problem.pattern.window);
}

void BlockedBackend::Prepare(AttentionProblem* problem) const {
  const torch::ScalarType type = problem->operands.query.scalar_type();
  problem->operands.ForEachTensor([&](torch::Tensor& tensor) {
    if (tensor.defined()) {
      tensor = tensor.to(type);
    }
  });
  problem->previous.ForEachTensor([&](torch::Tensor& scores) {
    if (scores.defined()) {
      scores = scores.to(ScoreType(problem->operands.query));
    }
  });
  problem->gates.ForEachTensor([&](torch::Tensor& gate) {
    if (gate.defined()) {
      gate = gate.to(ScoreType(problem->operands.query));
    }
  });
}

ScorePair BlockedBackend::NewScores(const AttentionProblem& problem) const {
  return EmptyScores(AttentionSizes(problem),
                     problem.operands.query.options().dtype(
                         ScoreType(problem.operands.query)));
}

AttentionForward BlockedBackend::Forward(
    const AttentionProblem& problem) const {
  const torch::NoGradGuard no_grad;
  const AttentionSizes sizes(problem);
  const AttentionOperands& operands = problem.operands;
  // Heads of a token side by side, as the output projection wants them.
  const torch::Tensor context =
      torch::zeros({sizes.batch, sizes.queries, sizes.heads, sizes.value_dim},
                   operands.own_value.options().requires_grad(false))
          .transpose(1, 2);
  const BlockedSoftmax softmax(problem, BlockLength(problem));
  ForEachPart(problem, options_.scores_at_once, [&](const HeadRange& heads) {
    ScorePair sums = softmax.Scores(PartOfEach(operands, heads));
    if (problem.carry) {
      const ScorePair carried = PartOfEach(problem.carried, heads);
      const ScorePair previous = PartOfEach(problem.previous, heads);
      // Before the sum, which may overwrite the previous scores.
      const ScorePair logits =
          problem.gates.defined()
              ? GatedLogits(sums, SomeHeadsOfEach(problem.gates, 0, heads),
                            previous)
              : carried;
      SumOf(previous, sums, /*subtract=*/false, carried);
      sums = logits;
    }
    Part(context, heads)
        .copy_(softmax.Context(sums, Part(operands.own_value, heads),
                               Part(operands.other_value, heads),
                               DropoutFactors(problem, heads)));
  });
  return {.context = context, .scores = problem.carried};
}

void BlockedBackend::RecomputeScores(const AttentionProblem& problem,
                                     bool subtract) const {
  const torch::NoGradGuard no_grad;
  const BlockedSoftmax softmax(problem, BlockLength(problem));
  ForEachPart(problem, options_.scores_at_once, [&](const HeadRange& heads) {
    SumOf(PartOfEach(problem.previous, heads),
          softmax.Scores(PartOfEach(problem.operands, heads)), subtract,
          PartOfEach(problem.carried, heads));
  });
}

AttentionGradients BlockedBackend::Backward(
    const AttentionProblem& problem, const AttentionForward& /*forward*/,
    const torch::Tensor& context_gradient, const ScoreGradients& scores) const {
  const torch::NoGradGuard no_grad;
  AttentionGradients gradients = ZeroGradients(problem);
  const BlockedSoftmax softmax(problem, BlockLength(problem));
  ForEachPart(problem, options_.scores_at_once, [&](const HeadRange& heads) {
    PartGradients part(softmax, PartOfEach(problem.operands, heads),
                       PartOfEach(gradients.operands, heads));
    const ScorePair own_scores = part.scores();
    const ScorePair sums =
        problem.carry ? PartOfEach(problem.carried, heads) : own_scores;
    const bool has_gates = problem.gates.defined();
    const ResidualGates gates = SomeHeadsOfEach(problem.gates, 0, heads);
    const ScorePair previous =
        has_gates ? ScorePair{.own = sums.own - own_scores.own,
                              .other = sums.other - own_scores.other}
                  : ScorePair();
    // Gradients of the logits times 1 / divisor, then of the sums.
    const ScorePair inner =
        context_gradient.defined()
            ? part.ThroughContext(
                  has_gates ? GatedLogits(own_scores, gates, previous) : sums,
                  DropoutFactors(problem, heads), Part(context_gradient, heads))
            : ScorePair{.own = torch::zeros_like(sums.own),
                        .other = torch::zeros_like(sums.other)};
    const ScorePair carried = PartOfEach(scores.carried, heads);
    // Copies: what is carried may lie where the previous ones are written.
    ScorePair of_sums = inner;
    if (has_gates) {
      of_sums = {.own = inner.own.clone(), .other = inner.other.clone()};
    }
    AddDefined(of_sums.own, carried.own);
    AddDefined(of_sums.other, carried.other);
    part.ThroughScores(of_sums);
    if (has_gates) {
      const ResidualGates into = SomeHeadsOfEach(gradients.gates, 0, heads);
      ThroughGate(gates.own, previous.own, into.own, inner.own);
      ThroughGate(gates.other, previous.other, into.other, inner.other);
      AddDefined(inner.own, carried.own);
      AddDefined(inner.other, carried.other);
    }
    if (scores.previous.defined()) {
      Part(scores.previous.own, heads).copy_(inner.own);
      Part(scores.previous.other, heads).copy_(inner.other);
    }
    if (scores.undo) {
      SumOf(sums, own_scores, /*subtract=*/true, sums);
    }
  });
  return gradients;
}

}  // namespace etc
