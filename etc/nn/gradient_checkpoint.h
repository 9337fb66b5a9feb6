#ifndef ETC_ETC_NN_GRADIENT_CHECKPOINT_H_
#define ETC_ETC_NN_GRADIENT_CHECKPOINT_H_

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace etc {

using TensorFunction = std::function<std::vector<torch::Tensor>(
    const std::vector<torch::Tensor>&)>;

// Inputs that the function changes in place, whose values therefore cannot be
// kept.
struct ChangedInputs {
  std::vector<torch::Tensor> first;  // for the first call
  // Gives leaves of the same shapes and values for the second call, in the
  // backward pass. Gradients flow to those that require one.
  std::function<std::vector<torch::Tensor>()> again;
};

// `function(inputs)`, keeping only the inputs for the backward pass, which
// calls the function once more (Chen et al. 2016). The second call draws the
// same seeds (DrawDropoutSeed, base/dropout_seeds.h) as the first, so that
// dropout masks agree; the generators of LibTorch, which all threads share,
// stay as they are. The function draws nothing else.
//
//   inputs:      what the function is called with
//   parameters:  what else it depends on; gradients flow to them as well
//   changed:     what it is called with behind `inputs`
//
// An output that nobody reads gets no gradient, rather than zeros. All tensors
// are defined, those that the function returns too. Double backward is refused
// (c10::Error), as are inputs and parameters that changed in place, and a
// second call that does not draw all seeds of the first (RunWithSeeds).
std::vector<torch::Tensor> CheckpointGradients(
    const TensorFunction& function, const std::vector<torch::Tensor>& inputs,
    const std::vector<torch::Tensor>& parameters,
    const ChangedInputs& changed = {});

// Calls `function`, which draws `seeds` (ReplayDropoutSeeds), all of them: else
// c10::Error.
void RunWithSeeds(const std::vector<uint64_t>& seeds,
                  const std::function<void()>& function);

// Groups `layers` layers in chains for gradient checkpointing (doc/model.md
// 4.4): [begin, end) of each. The first holds the remainder of layers / period;
// the last is the one that is not recomputed. Period <= 0: one chain.
std::vector<std::pair<int64_t, int64_t>> CheckpointChains(int64_t layers,
                                                          int64_t period);

}  // namespace etc

#endif  // ETC_ETC_NN_GRADIENT_CHECKPOINT_H_
