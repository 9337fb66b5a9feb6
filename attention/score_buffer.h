#ifndef ETC_ATTENTION_SCORE_BUFFER_H_
#define ETC_ATTENTION_SCORE_BUFFER_H_

#include <c10/core/TensorImpl.h>
#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "attention/attention_problem.h"
#include "attention/backends/backend.h"
#include "attention/residual_scores.h"

namespace etc {

// Changes in place of some tensors, as autograd counts them; those of inference
// tensors are not counted.
class TensorVersions {
 public:
  // Counts from now on those of another tensor, unless it is undefined.
  void Add(const torch::Tensor& tensor);
  // Returns true if any was changed since Add or Renew.
  bool HaveChanged() const;
  // Takes all tensors as they are now for unchanged.
  void Renew();

 private:
  struct Version {
    int64_t Now() const {
      return counter.enabled() ? counter.current_version() : 0;
    }

    c10::VariableVersion counter;
    int64_t expected = 0;
  };

  std::vector<Version> versions_;
};

// The scores of one softmax throughout a stack of layers, in one pair of
// tensors: ScoreStorage kReverse and kRecompute. Autograd does not know of it,
// or it would keep a copy of what each layer left.
//
// Layers are added and removed in order. The forward pass of a layer adds its
// scores in place; its backward pass asks for the scores as the layer left
// them, and removes the layer.
class ScoreBuffer {
 public:
  // Makes a buffer for scores shaped as those of `first`, whose previous
  // scores, if any, are the base of the sum: they are read by the first layer
  // (with kRecompute, once more by each backward pass), never written.
  ScoreBuffer(const FusedBackend& backend, ScoreStorage storage,
              const AttentionProblem& first);

  int64_t layers() const { return layers_; }
  // Returns the count, over all forward passes, of the one that gave the sum so
  // far.
  int64_t pass() const {
    return layers_ == 0 ? 0 : added_[static_cast<size_t>(layers_ - 1)].pass;
  }
  // Throws c10::Error unless the sum is that which the `pass`-th forward pass
  // left as the last of `layers` layers, and as it left it.
  void CheckHolds(int64_t layers, int64_t pass) const;
  // The sum so far. Its values change with the next layer.
  const ScorePair& scores() const { return scores_; }
  // Returns true if `backend` computes its layers.
  bool IsOf(const FusedBackend& backend) const { return &backend == &backend_; }
  // Returns true if these are the buffer's own scores.
  bool Holds(const ScorePair& scores) const;

  // The next layer, with where it finds the sum so far and where it leaves its
  // own. `differentiable`: a backward pass may follow. Call Added after its
  // forward pass: without it, as after an exception, the scores are gone.
  AttentionProblem Next(AttentionProblem problem, bool differentiable);
  // Returns the new sum, over the same memory, in tensors that autograd takes
  // for the layer's own. `previous`: the tensors in which the layer took the
  // sum so far, if it did, which autograd refuses to use as they were.
  ScorePair Added(const ScorePair& previous);

  // Goes back to `layers` layers, of which the next, whose last forward pass
  // was the `pass`-th, runs again: gradient checkpointing, where the first pass
  // kept nothing. That layer's scores leave the sum when the pass begins,
  // by Next, which has its queries and keys. kReverse only. Throws c10::Error
  // as ReturnTo does.
  void RunAgain(int64_t layers, int64_t pass);

  // Brings the scores back to what the `pass`-th forward pass left as the last
  // of `layers` layers, also where the backward pass left out layers above
  // those. Throws c10::Error if that is no longer possible: another layer has
  // taken the place of one of these, scores or operands were changed in place,
  // or, with kReverse, it is the second time.
  void ReturnTo(int64_t layers, int64_t pass);
  // Returns the scores' part in the backward pass of the last of `layers`
  // layers, after ReturnTo. `above`: gradients from the layer above. The
  // gradients of all layers share one pair of tensors, too; with kRecompute,
  // which allows another pass, those of the base have their own. Call Removed
  // after the pass: without it the scores of kReverse are gone.
  ScoreGradients Gradients(int64_t layers, const ScorePair& above);
  void Removed(int64_t layers);

 private:
  // A layer in the sum.
  struct AddedLayer {
    int64_t pass = 0;
    TensorVersions scores;  // that it returned
  };
  // A layer whose scores can be computed again.
  struct KeptLayer {
    AttentionProblem problem;
    TensorVersions operands;  // with the base, if they are added to it
  };

  AttentionProblem WithScores(AttentionProblem problem,
                              const ScorePair& previous);
  void Keep(const AttentionProblem& problem);
  // Throws c10::Error if the scores are gone or were changed in place.
  void CheckIntact() const;
  void Recompute(const KeptLayer& layer, const ScorePair& previous,
                 bool subtract);

  const FusedBackend& backend_;
  const ScoreStorage storage_;
  const bool has_base_;
  ScorePair scores_;
  int64_t layers_ = 0;
  // The first layers, those that a backward pass has removed too, and the
  // number of passes so far.
  std::vector<AddedLayer> added_;
  int64_t last_pass_ = 0;
  // A pass changes the scores, or has ended with an exception.
  bool is_changing_ = false;
  // Layers [first_kept_, first_kept_ + kept_.size()), and the sum that the
  // first of them found; undefined: zeros.
  std::vector<KeptLayer> kept_;
  int64_t first_kept_ = 0;
  ScorePair base_;
  // The memory has the scores of the layer that runs next already (RunAgain).
  bool holds_next_ = false;
  ScorePair gradients_;
};

// The scores that a layer took, for its second forward pass (gradient
// checkpointing): leaves of a graph of its own, those of a buffer over the
// buffer's memory.
//
//   taken:  by the first pass; in a buffer their values may have changed
//   left:   where that pass left its own scores; of no buffer: nowhere that
//           another layer would change
//
// Throws c10::Error as RunAgain does.
ResidualPair ScoresTakenAgain(const ResidualPair& taken,
                              const LiveScores& left);

}  // namespace etc

#endif  // ETC_ATTENTION_SCORE_BUFFER_H_
