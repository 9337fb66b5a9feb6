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

void MarkAsChanged(const torch::Tensor& tensor) {
  if (!tensor.is_inference()) {
    tensor.unsafeGetTensorImpl()->bump_version();
  }
}

}  // namespace

void TensorVersions::Add(const torch::Tensor& tensor) {
  if (tensor.defined()) {
    versions_.push_back(
        {.counter = tensor.unsafeGetTensorImpl()->version_counter()});
    versions_.back().expected = versions_.back().Now();
  }
}

bool TensorVersions::HaveChanged() const {
  return std::any_of(
      versions_.begin(), versions_.end(),
      [](const Version& version) { return version.Now() != version.expected; });
}

void TensorVersions::Renew() {
  for (Version& version : versions_) {
    version.expected = version.Now();
  }
}

const torch::Tensor& ScoreTensor::operator*() const {
  if (live_.buffer != nullptr) {
    live_.buffer->CheckHolds(live_.layers, live_.pass);
  }
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

void ScoreBuffer::CheckIntact() const {
  TORCH_CHECK(!is_changing_,
              "residual scores in a buffer are gone, since a forward or "
              "backward pass that was to change them ended with an error");
  for (const AddedLayer& layer : added_) {
    TORCH_CHECK(!layer.scores.HaveChanged(),
                "residual scores in a buffer were changed in place, but the "
                "backward pass needs them as their layer left them: change a "
                "copy, or use ScoreStorage::kStore");
  }
}

void ScoreBuffer::CheckHolds(int64_t layers, int64_t pass) const {
  CheckIntact();
  TORCH_CHECK(
      layers_ == layers && this->pass() == pass, "these residual scores, of ",
      layers, " layers, are gone: their buffer now holds others, of ", layers_,
      " layers, since the next layer overwrites them and the backward pass "
      "takes them back. To give the scores of a layer to several others, or to "
      "keep them, use ScoreStorage::kStore; to look at them, copy them in time "
      "(attention/inspection.h)");
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

void ScoreBuffer::Keep(const AttentionProblem& problem) {
  KeptLayer layer = {.problem = Detached(problem)};
  const auto add = [&](const torch::Tensor& tensor) {
    layer.operands.Add(tensor);
  };
  problem.operands.ForEachTensor(add);
  if (kept_.empty() && storage_ == ScoreStorage::kRecompute) {
    base_.ForEachTensor(add);
  }
  kept_.push_back(std::move(layer));
}

AttentionProblem ScoreBuffer::Next(AttentionProblem problem,
                                   bool differentiable) {
  is_changing_ = true;
  if (!kept_.empty()) {
    // Without those whose place others take.
    kept_.erase(kept_.begin() + (layers_ - first_kept_), kept_.end());
  }
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
  AttentionProblem next =
      WithScores(std::move(problem), layers_ == 0 ? base_ : scores_);
  if (differentiable || !kept_.empty()) {
    Keep(next);
  }
  return next;
}

ScorePair ScoreBuffer::Added(const ScorePair& previous) {
  added_.resize(static_cast<size_t>(layers_));
  if (Holds(previous)) {
    previous.ForEachTensor(MarkAsChanged);
    if (!added_.empty()) {
      added_.back().scores.Renew();
    }
  }
  const ScorePair sum = {.own = scores_.own.variable_data(),
                         .other = scores_.other.variable_data()};
  AddedLayer layer = {.pass = ++last_pass_};
  sum.ForEachTensor(
      [&](const torch::Tensor& tensor) { layer.scores.Add(tensor); });
  added_.push_back(std::move(layer));
  ++layers_;
  is_changing_ = false;
  return sum;
}

void ScoreBuffer::RunAgain(int64_t layers, int64_t pass) {
  TORCH_CHECK(storage_ == ScoreStorage::kReverse,
              "only ScoreStorage::kReverse lets a layer run again in place");
  // The backward pass may have left out layers above.
  ReturnTo(layers + 1, pass);
  layers_ = layers;
  holds_next_ = layers > 0;
}

void ScoreBuffer::Recompute(const KeptLayer& layer, const ScorePair& previous,
                            bool subtract) {
  TORCH_CHECK(!layer.operands.HaveChanged(),
              "the operands of a layer were changed in place after its forward "
              "pass, but its residual scores have to be computed again; change "
              "copies, or use ScoreStorage::kStore");
  is_changing_ = true;
  backend_.RecomputeScores(WithScores(layer.problem, previous), subtract);
  is_changing_ = false;
}

void ScoreBuffer::ReturnTo(int64_t layers, int64_t pass) {
  CheckIntact();
  TORCH_CHECK(!holds_next_,
              "residual scores in a buffer are gone, since a layer that was to "
              "run again ended with an error");
  TORCH_CHECK(storage_ != ScoreStorage::kReverse || layers <= layers_,
              "a backward pass has consumed the residual scores of this layer; "
              "to run a second one, use ScoreStorage::kRecompute or kStore");
  const auto last = static_cast<size_t>(layers - 1);
  TORCH_CHECK(last < added_.size() && added_[last].pass == pass,
              "the residual scores of this layer are gone: another layer took "
              "its place in their buffer; to give the scores of a layer to "
              "several others, use ScoreStorage::kStore");
  if (storage_ == ScoreStorage::kReverse) {
    for (; layers_ > layers; --layers_) {
      TORCH_CHECK(!kept_.empty(), "the residual scores of layer ", layers_,
                  " cannot leave the sum: the backward pass left out that "
                  "layer, which gradient checkpointing was to run again; use "
                  "ScoreStorage::kRecompute or kStore");
      Recompute(kept_.back(), scores_, /*subtract=*/true);
      kept_.pop_back();
    }
    return;
  }
  if (layers_ == layers) {
    return;
  }
  for (int64_t layer = first_kept_; layer < layers; ++layer) {
    Recompute(kept_[static_cast<size_t>(layer - first_kept_)],
              layer == first_kept_ ? base_ : scores_, /*subtract=*/false);
    layers_ = layer + 1;
  }
}

ScoreGradients ScoreBuffer::Gradients(int64_t layers, const ScorePair& above) {
  is_changing_ = storage_ == ScoreStorage::kReverse;
  ScoreGradients gradients = {.carried = above};
  if (layers == 1 && !has_base_) {
    return gradients;
  }
  if (layers == 1 && storage_ == ScoreStorage::kRecompute) {
    // They leave the stack: a second backward pass must not write into them.
    gradients.previous = backend_.NewScores(kept_.front().problem);
  } else {
    if (!gradients_.defined()) {
      gradients_ = backend_.NewScores(kept_.front().problem);
    }
    gradients.previous = gradients_;
  }
  gradients.undo = storage_ == ScoreStorage::kReverse;
  return gradients;
}

void ScoreBuffer::Removed(int64_t layers) {
  is_changing_ = false;
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
    left.buffer->RunAgain(taken.layers, left.pass);
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
