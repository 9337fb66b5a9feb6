#ifndef ETC_TASKS_OPENKP_HEAD_H_
#define ETC_TASKS_OPENKP_HEAD_H_

#include <torch/types.h>

#include "tasks/openkp/example.h"
#include "tasks/task/benchmark_head.h"

namespace etc {

// The parts of the head (MakeOpenkpHead) by themselves.

// The logit of n-grams that do not exist.
inline constexpr double kOpenkpNoNgramLogit = -10000.0;

// The sums of long vectors by word: [B, W, H]; words without tokens and
// positions behind the last word are 0. `encoded` is [B, L, H].
torch::Tensor SumsOfWords(const torch::Tensor& encoded,
                          const BenchmarkBatch<OpenkpExample>& batch);

// The distribution that n-grams should have (doc/openkp.md 6.1), with C
// classes:
//
//   p = counts / (sum of counts + 1e-6) + max(mass, 1e-6) / C
//   target = p / sum of p
//
//   counts:  [B, K, W], how many key phrases stand at each place
//   classes: [B, K, W] bool, the places that count; 0 elsewhere
//   mass:    of the target, spread over all classes
//   returns: [B, K, W]; uniform if there are no key phrases
torch::Tensor NgramTargets(const torch::Tensor& counts,
                           const torch::Tensor& classes, double mass);

// -sum of target log softmax(logits) over the classes (doc/openkp.md 6.2): [B].
// All arguments are [B, K, W]; every row needs a class.
torch::Tensor NgramLosses(const torch::Tensor& logits,
                          const torch::Tensor& targets,
                          const torch::Tensor& classes);

}  // namespace etc

#endif  // ETC_TASKS_OPENKP_HEAD_H_
