#ifndef ETC_ETC_STEP_COST_H_
#define ETC_ETC_STEP_COST_H_

#include <cstdint>
#include <optional>

#include "attention/residual_scores.h"
#include "base/linear.h"
#include "etc/config.h"
#include "etc/layer_slices.h"

namespace etc {

// Numbers of tokens of an example that the last layer gives outputs of
// (OutputRows); unset: all.
struct OutputCounts {
  std::optional<int64_t> longs;
  std::optional<int64_t> globals;
};

// Sizes of a micro-batch: B examples of L long and G global tokens.
struct StepShape {
  int64_t batch = 1;
  int64_t long_length = 4096;
  int64_t global_length = 430;
  OutputCounts outputs;
};

// The implementation of a training step, on which depends what autograd keeps.
//
//   kCpu             the fused kernels of the CPU
//   kCudaKernels     fused attention on a CUDA device
//                    (attention/backends/cuda), LibTorch's operations for all
//                    else
//   kCudaOperations  LibTorch's operations, for attention those of
//                    attention/backends/blocked
enum class StepBackend { kCpu, kCudaKernels, kCudaOperations };

// Settings of a training step that change its cost.
struct StepOptions {
  ScoreStorage storage = ScoreStorage::kReverse;
  LinearPrecision precision = LinearPrecision::kFloat32;
  StepBackend backend = StepBackend::kCpu;
  // Set: layers are computed in slices (etc/sliced_layer.h).
  std::optional<LayerSlices> slices = std::nullopt;
};

// Bytes that forward and backward of one EtcModel need on top of weights and
// gradients, with the attention kernels, at the moment when they need most:
// where the backward pass comes to the last layer, to one before it, or to a
// chain that is recomputed.
struct ActivationBytes {
  // Tensors kept from forward to backward, but for those of residual scores. On
  // a device with weights rounded for products in bfloat16.
  double saved = 0;
  // Bytes of residual scores and their gradients: those carried from layer to
  // layer, and those kept for chains that are recomputed.
  double residual_scores = 0;
  // Patterns or masks of the batch.
  double attention_inputs = 0;
  // Temporaries.
  double working = 0;

  double total() const {
    return saved + residual_scores + attention_inputs + working;
  }
};

// Derived from what autograd keeps in etc/encoder_layer.cc and
// attention/sparse_attention.cc; a test compares it with a real step. The last
// layer keeps no more than StepShape::outputs need; with slices that is counted
// for streams without an output alone. `config` has passed CheckEtcConfig.
ActivationBytes EstimateActivations(const EtcConfig& config,
                                    const StepShape& shape,
                                    const StepOptions& options);

// The same of one forward pass without gradients, as evaluations make it: keeps
// nothing (`saved` is 0) but the residual scores of one layer, of two with
// ScoreStorage::kStore or without fused attention, and the temporaries of a
// layer. Neither gradient checkpointing nor slices change it.
ActivationBytes EstimateForwardActivations(const EtcConfig& config,
                                           const StepShape& shape,
                                           const StepOptions& options);

// Floating-point operations of one forward pass: two for each multiplication
// with addition. Softmax, norms and the like are left out. Scores are counted
// for pairs within the windows only, [B, N, L, 2r + 1 + G] and [B, N, G, L +
// G]; an implementation may compute more.
struct ForwardFlops {
  // Query, key, value and output projections.
  double projections = 0;
  // Scores, with those of relative ids, and contexts.
  double attention = 0;
  double feed_forward = 0;
  // The projection of token vectors that are not H wide.
  double embedding = 0;

  double total() const {
    return projections + attention + feed_forward + embedding;
  }
};
ForwardFlops CountForwardFlops(const EtcConfig& config, const StepShape& shape);

// Operations of the residual scores that the backward pass computes again with
// ScoreStorage::kRecompute: before layer n of a chain of gradient checkpointing
// (of all layers without it) those of n layers, but before the last. 0 with
// other storages.
double CountRecomputedScoreFlops(const EtcConfig& config,
                                 const StepShape& shape,
                                 const StepOptions& options);

// Operations of forward and backward, which does twice as much, and of what
// gradient checkpointing and ScoreStorage::kRecompute compute again.
double CountTrainingFlops(const EtcConfig& config, const StepShape& shape,
                          const StepOptions& options = {});

// Cost of computing the layers, in units of one forward pass: 3, plus the part
// that gradient checkpointing, or a layer in slices, computes again.
double LayerPasses(const EtcConfig& config, const StepOptions& options = {});

// Bytes that forward and backward of the layers move between memory and CPU
// outside of products and attention: norms and residual sums, activations,
// bias gradients, sums of the gradients of one input; and the reading and
// writing of carried scores, those computed again with them; in bfloat16 also
// the rounding of operands.
double CountTrainingTraffic(const EtcConfig& config, const StepShape& shape,
                            const StepOptions& options);

}  // namespace etc

#endif  // ETC_ETC_STEP_COST_H_
