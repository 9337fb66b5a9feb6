#ifndef ETC_ATTENTION_SCORE_BUFFER_H_
#define ETC_ATTENTION_SCORE_BUFFER_H_

#include <cstdint>
#include <vector>

#include "attention/backends/cpu/kernel_passes.h"
#include "attention/residual_scores.h"

namespace etc {

// The live scores of one softmax throughout a stack of layers: ScoreStorage
// kReverse and kRecompute. It lies outside of what autograd knows, which would
// keep a copy of what each layer left.
//
// Layers come and go in order. A layer that comes adds its scores in place; the
// backward pass calls for the scores as that layer left them, and takes the
// layer away.
class ScoreBuffer {
 public:
  // For scores shaped as those of `first`. Its previous ones, if any, are where
  // the sum begins: they are read by the first layer (with kRecompute, once
  // more by each backward pass), never written.
  ScoreBuffer(ScoreStorage storage, const KernelProblem& first);

  int64_t layers() const { return layers_; }
  // The sum so far. Its content changes with the next layer.
  const ScorePair& scores() const { return scores_; }
  // Whether these are the buffer's own scores.
  bool Holds(const torch::Tensor& own, const torch::Tensor& other) const;

  // The next layer, with where it finds the sum so far and where it leaves its
  // own. `differentiable`: a backward pass may come back to it. Then
  // RunKernelForward, then Added.
  KernelProblem Next(KernelProblem problem, bool differentiable);
  void Added() { ++layers_; }

  // Brings the scores back to what they were after `layers` layers, also where
  // the backward pass left out layers above those. Throws c10::Error if that
  // cannot be any more: with kReverse, the second time.
  void ReturnTo(int64_t layers);
  // What the backward pass of the last of `layers` layers has to do, after
  // ReturnTo(layers). `above`: gradients from the layer above. Those of all
  // layers share one pair of tensors, too.
  KernelScoreGradients Gradients(int64_t layers, const ScorePair& above);
  // Says that it has been done.
  void Removed(int64_t layers);

 private:
  KernelProblem WithScores(KernelProblem problem, const ScorePair& previous);

  const ScoreStorage storage_;
  const bool has_base_;
  ScorePair scores_;
  int64_t layers_ = 0;
  // Layers whose scores can be computed again, [first_kept_, first_kept_ +
  // kept_.size()), and the sum that the first of them found; undefined: zeros.
  std::vector<KernelProblem> kept_;
  int64_t first_kept_ = 0;
  ScorePair base_;
  ScorePair gradients_;
};

}  // namespace etc

#endif  // ETC_ATTENTION_SCORE_BUFFER_H_
