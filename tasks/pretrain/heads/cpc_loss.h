#ifndef ETC_TASKS_PRETRAIN_HEADS_CPC_LOSS_H_
#define ETC_TASKS_PRETRAIN_HEADS_CPC_LOSS_H_

#include <torch/types.h>

namespace etc {

// M hidden sentences and N >= M targets, of which those without a context are
// further negatives (of other processes).
struct CpcInput {
  torch::Tensor contexts;  // [M, H], outputs of the hidden sentences' globals
  torch::Tensor targets;   // [N, H], outputs of globals that see the sentence
  torch::Tensor target_rows;  // [M] int64, the target of each context
  torch::Tensor kernel;       // [H, H]; undefined: plain dot products
  double temperature = 1.0;
};

struct CpcLosses {
  // [M], float32 or, of doubles, float64.
  torch::Tensor losses;
  // [M] bool: whether the right target is the first of the highest scores.
  torch::Tensor correct;
};

// The noise-contrastive loss of ETC's pre-training (van den Oord et al. 2018,
// equation 4; doc/pretraining.md 9.1):
//
//   f[i, j] = contexts[i]^T kernel targets[j] / temperature
//   loss[i] = - log (exp f[i, target of i] / sum over j of exp f[i, j])
//
// A single target gives losses and gradients of 0; without contexts there are
// no losses, and gradients are 0 too. Differentiable in contexts, targets and
// kernel. Throws c10::Error for other shapes, a temperature that is not
// positive, and on the CPU for target rows out of range.
CpcLosses ComputeCpcLosses(const CpcInput& input);

}  // namespace etc

#endif  // ETC_TASKS_PRETRAIN_HEADS_CPC_LOSS_H_
