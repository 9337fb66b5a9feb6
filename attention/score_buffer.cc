#include "attention/score_buffer.h"

#include <c10/util/Exception.h>

#include <utility>

namespace etc {
namespace {

// Outside of any graph, which would keep the buffer that keeps the tensor.
torch::Tensor DetachedOrUndefined(const torch::Tensor& tensor) {
  return tensor.defined() ? tensor.detach() : tensor;
}

KernelProblem Detached(KernelProblem problem) {
  for (torch::Tensor* tensor :
       {&problem.query, &problem.own_key, &problem.own_value,
        &problem.other_key, &problem.other_value, &problem.relative.embedding,
        &problem.relative.bias}) {
    *tensor = DetachedOrUndefined(*tensor);
  }
  return problem;
}

}  // namespace

ScoreBuffer::ScoreBuffer(ScoreStorage storage, const KernelProblem& first)
    : storage_(storage),
      has_base_(first.own_previous.defined()),
      scores_(NewScores(first)),
      base_({.own = DetachedOrUndefined(first.own_previous),
             .other = DetachedOrUndefined(first.other_previous)}) {
  TORCH_CHECK(storage != ScoreStorage::kStore,
              "scores that are stored need no buffer");
}

bool ScoreBuffer::Holds(const torch::Tensor& own,
                        const torch::Tensor& other) const {
  return own.defined() && other.defined() &&
         own.data_ptr() == scores_.own.data_ptr() &&
         other.data_ptr() == scores_.other.data_ptr();
}

KernelProblem ScoreBuffer::WithScores(KernelProblem problem,
                                      const ScorePair& previous) {
  problem.own_previous = previous.own;
  problem.other_previous = previous.other;
  problem.own_carried = scores_.own;
  problem.other_carried = scores_.other;
  return problem;
}

KernelProblem ScoreBuffer::Next(KernelProblem problem, bool differentiable) {
  if (layers_ == 1 && kept_.empty()) {
    base_ = {};
  }
  if (differentiable && kept_.empty()) {
    first_kept_ = layers_;
    if (storage_ == ScoreStorage::kRecompute && layers_ > 0) {
      base_ = {.own = scores_.own.clone(), .other = scores_.other.clone()};
    }
  }
  const KernelProblem next =
      WithScores(std::move(problem), layers_ == 0 ? base_ : scores_);
  if (differentiable || !kept_.empty()) {
    kept_.push_back(Detached(next));
  }
  return next;
}

void ScoreBuffer::ReturnTo(int64_t layers) {
  if (storage_ == ScoreStorage::kReverse) {
    TORCH_CHECK(layers <= layers_,
                "a backward pass has consumed the residual scores of this "
                "layer; to run a second one, use ScoreStorage::kRecompute or "
                "kStore");
    for (; layers_ > layers; --layers_) {
      RunKernelScores(WithScores(kept_.back(), scores_), /*subtract=*/true);
      kept_.pop_back();
    }
    return;
  }
  if (layers_ == layers) {
    return;
  }
  for (int64_t layer = first_kept_; layer < layers; ++layer) {
    RunKernelScores(WithScores(kept_[static_cast<size_t>(layer - first_kept_)],
                               layer == first_kept_ ? base_ : scores_),
                    /*subtract=*/false);
  }
  layers_ = layers;
}

KernelScoreGradients ScoreBuffer::Gradients(int64_t layers,
                                            const ScorePair& above) {
  KernelScoreGradients gradients = {.own_carried = above.own,
                                    .other_carried = above.other};
  if (layers == 1 && !has_base_) {
    return gradients;
  }
  if (!gradients_.own.defined()) {
    gradients_ = NewScores(kept_.front());
  }
  gradients.own_previous = gradients_.own;
  gradients.other_previous = gradients_.other;
  gradients.undo = storage_ == ScoreStorage::kReverse;
  return gradients;
}

void ScoreBuffer::Removed(int64_t layers) {
  if (storage_ == ScoreStorage::kReverse) {
    layers_ = layers - 1;
    kept_.pop_back();
  }
}

}  // namespace etc
