#include "attention/score_buffer.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

namespace etc {
namespace {

// Outside of any graph, which would keep the buffer that keeps the tensor.
void Detach(torch::Tensor& tensor) {
  if (tensor.defined()) {
    tensor = tensor.detach();
  }
}

ScorePair Detached(ScorePair scores) {
  scores.ForEachTensor(Detach);
  return scores;
}

AttentionProblem Detached(AttentionProblem problem) {
  problem.operands.ForEachTensor(Detach);
  problem.gates.ForEachTensor(Detach);
  return problem;
}

}  // namespace

const torch::Tensor& ScoreTensor::operator*() const {
  const ScoreBuffer* const buffer = live_.buffer.get();
  TORCH_CHECK(
      buffer == nullptr ||
          (buffer->layers() == live_.layers && buffer->pass() == live_.pass),
      "these residual scores, of ", live_.layers,
      " layers, are gone: their buffer now holds others, of ",
      buffer == nullptr ? 0 : buffer->layers(),
      " layers, since the next layer overwrites them and the backward pass "
      "takes them back. To give the scores of a layer to several others, or to "
      "keep them, use ScoreStorage::kStore; to look at them, copy them in time "
      "(attention/inspection.h)");
  return scores_;
}

ScoreBuffer::ScoreBuffer(const FusedBackend& backend, ScoreStorage storage,
                         const AttentionProblem& first)
    : backend_(backend),
      storage_(storage),
      has_base_(first.previous.defined()),
      scores_(backend.NewScores(first)),
      base_(Detached(first.previous)) {
  TORCH_CHECK(storage != ScoreStorage::kStore,
              "scores that are stored need no buffer");
}

bool ScoreBuffer::Holds(const ScorePair& scores) const {
  return scores.own.defined() && scores.other.defined() &&
         scores.own.data_ptr() == scores_.own.data_ptr() &&
         scores.other.data_ptr() == scores_.other.data_ptr();
}

AttentionProblem ScoreBuffer::WithScores(AttentionProblem problem,
                                         const ScorePair& previous) {
  problem.previous = previous;
  problem.carried = scores_;
  return problem;
}

AttentionProblem ScoreBuffer::Next(AttentionProblem problem,
                                   bool differentiable) {
  if (layers_ == 1 && kept_.empty()) {
    base_ = {};
  }
  if (std::exchange(holds_next_, false)) {
    backend_.RecomputeScores(WithScores(problem, scores_), /*subtract=*/true);
  }
  if (differentiable && kept_.empty()) {
    first_kept_ = layers_;
    if (storage_ == ScoreStorage::kRecompute && layers_ > 0) {
      base_ = {.own = scores_.own.clone(), .other = scores_.other.clone()};
    }
  }
  const AttentionProblem next =
      WithScores(std::move(problem), layers_ == 0 ? base_ : scores_);
  if (differentiable || !kept_.empty()) {
    kept_.push_back(Detached(next));
  }
  return next;
}

void ScoreBuffer::RunAgain(int64_t layers) {
  TORCH_CHECK(storage_ == ScoreStorage::kReverse,
              "only ScoreStorage::kReverse lets a layer run again in place");
  // The backward pass may have left out layers above.
  ReturnTo(layers + 1);
  layers_ = layers;
  holds_next_ = layers > 0;
}

void ScoreBuffer::Added() {
  passes_.resize(static_cast<size_t>(layers_));
  passes_.push_back(++last_pass_);
  ++layers_;
}

void ScoreBuffer::ReturnTo(int64_t layers) {
  if (storage_ == ScoreStorage::kReverse) {
    TORCH_CHECK(layers <= layers_,
                "a backward pass has consumed the residual scores of this "
                "layer; to run a second one, use ScoreStorage::kRecompute or "
                "kStore");
    for (; layers_ > layers; --layers_) {
      TORCH_CHECK(!kept_.empty(), "the residual scores of layer ", layers_,
                  " cannot leave the sum: the backward pass left out that "
                  "layer, which gradient checkpointing was to run again; use "
                  "ScoreStorage::kRecompute or kStore");
      backend_.RecomputeScores(WithScores(kept_.back(), scores_),
                               /*subtract=*/true);
      kept_.pop_back();
    }
    return;
  }
  if (layers_ == layers) {
    return;
  }
  for (int64_t layer = first_kept_; layer < layers; ++layer) {
    backend_.RecomputeScores(
        WithScores(kept_[static_cast<size_t>(layer - first_kept_)],
                   layer == first_kept_ ? base_ : scores_),
        /*subtract=*/false);
  }
  layers_ = layers;
  passes_.resize(std::max(passes_.size(), static_cast<size_t>(layers)),
                 ++last_pass_);
}

ScoreGradients ScoreBuffer::Gradients(int64_t layers, const ScorePair& above) {
  ScoreGradients gradients = {.carried = above};
  if (layers == 1 && !has_base_) {
    return gradients;
  }
  if (layers == 1 && storage_ == ScoreStorage::kRecompute) {
    // They leave the stack: a second backward pass must not write into them.
    gradients.previous = backend_.NewScores(kept_.front());
  } else {
    if (!gradients_.defined()) {
      gradients_ = backend_.NewScores(kept_.front());
    }
    gradients.previous = gradients_;
  }
  gradients.undo = storage_ == ScoreStorage::kReverse;
  return gradients;
}

void ScoreBuffer::Removed(int64_t layers) {
  if (storage_ == ScoreStorage::kReverse) {
    layers_ = layers - 1;
    kept_.pop_back();
  }
}

ResidualPair ScoresTakenAgain(const ResidualPair& taken,
                              const LiveScores& left) {
  ScorePair scores;
  LiveScores live;
  if (left.buffer != nullptr) {
    left.buffer->RunAgain(taken.layers);
    live = {.buffer = left.buffer,
            .layers = taken.layers,
            .pass = left.buffer->pass()};
    if (taken.layers > 0) {
      scores = left.buffer->scores();
    }
  } else if (taken.defined()) {
    scores = {.own = *taken.own, .other = *taken.other};
  }
  scores.ForEachTensor([](torch::Tensor& tensor) {
    if (tensor.defined()) {
      tensor = tensor.variable_data().requires_grad_(true);
    }
  });
  return {.own = ScoreTensor(scores.own, live),
          .other = ScoreTensor(scores.other, live),
          .layers = taken.layers};
}

}  // namespace etc
