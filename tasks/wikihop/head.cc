#include <c10/util/Exception.h>
#include <torch/nn/functional/activation.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include "base/apply_linear.h"
#include "base/check_shape.h"
#include "base/initializers.h"
#include "base/to_device.h"
#include "etc/nn/activation.h"
#include "etc/nn/residual_norm.h"
#include "tasks/task/benchmark_head.h"
#include "tasks/wikihop/task.h"

namespace etc {
namespace {

constexpr double kNoCandidateLogit = -10000.0;

// A linear layer as Keras makes it when it is told nothing.
torch::nn::Linear MakeGlorotLinear(int64_t inputs, int64_t outputs) {
  torch::nn::Linear linear(inputs, outputs);
  torch::nn::init::xavier_uniform_(linear->weight);
  torch::nn::init::zeros_(linear->bias);
  return linear;
}

// 1 for candidates: [B, G] bool, where the logits are.
torch::Tensor CandidateMask(const EtcInput& input,
                            const torch::Device& device) {
  return input.global_segment_ids.to(device).eq(kWikihopCandidateGlobalType);
}

// See MakeWikihopHead.
class WikihopHead : public BenchmarkHead<WikihopExample, WikihopLogits> {
 public:
  WikihopHead(const EtcConfig& config, const WikihopOptions& options)
      : options_(options),
        activation_(ActivationFromName(config.hidden_act)),
        dropout_(config.hidden_dropout_prob) {
    TORCH_CHECK(options.label_smoothing >= 0 && options.label_smoothing < 1,
                "label_smoothing should be in [0, 1), but is ",
                options.label_smoothing);
    const int64_t hidden = config.hidden_size;
    if (options.add_final_layer) {
      intermediate_ = register_module(
          "intermediate", MakeGlorotLinear(hidden, config.intermediate_size));
      output_ = register_module(
          "output", MakeGlorotLinear(config.intermediate_size, hidden));
      layer_norm_ = register_module(
          "layer_norm",
          torch::nn::LayerNorm(torch::nn::LayerNormOptions({hidden}).eps(
              kHeadLayerNormEpsilon)));
    }
    logit_ = register_module("logit",
                             MakeLinear(hidden, 1, config.initializer_range));
  }

  ReadTokens Reads() const override { return ReadTokens::kGlobal; }

  Tensors LogitsOf(const EtcOutput& encoded, const TaskBatch& batch) override {
    torch::Tensor hidden = encoded.global_output;  // [B, G, H]
    ETC_CHECK_SHAPE(batch.input.global_segment_ids,
                    {hidden.size(0), hidden.size(1)});
    if (options_.add_final_layer) {
      const torch::Tensor middle =  // [B, G, F]
          Activate(activation_, ApplyLinear(hidden, intermediate_));
      const torch::Tensor transformed =
          torch::dropout(ApplyLinear(middle, output_), dropout_, is_training());
      hidden = ApplyLayerNorm(hidden + transformed, layer_norm_);
    }
    const torch::Tensor logits =
        ApplyLinear(hidden, logit_).squeeze(-1);  // [B, G]
    return {.candidates = logits.masked_fill(
                CandidateMask(batch.input, logits.device()).logical_not(),
                kNoCandidateLogit)};
  }

  torch::Tensor LossesOf(const Tensors& logits,
                         const TaskBatch& batch) override {
    const torch::Device device = logits.candidates.device();
    const torch::Tensor log_probabilities =
        logits.candidates.log_softmax(-1);  // [B, G]
    const std::vector<int64_t> labels = batch.Each(
        [](const WikihopExample& example) { return example.label.value(); });
    const torch::Tensor right =  // [B]
        log_probabilities
            .gather(-1, ToDevice(torch::tensor(labels, torch::kInt64), device)
                            .unsqueeze(-1))
            .squeeze(-1);
    if (options_.label_smoothing == 0) {
      return -right;
    }
    const torch::Tensor mask = CandidateMask(batch.input, device);
    const torch::Tensor mean =  // [B], over candidates
        log_probabilities.masked_fill(mask.logical_not(), 0).sum(-1) /
        mask.sum(-1);
    return -((1 - options_.label_smoothing) * right +
             options_.label_smoothing * mean);
  }

 private:
  const WikihopOptions options_;
  const Activation activation_;
  const double dropout_;
  // Without a final layer the first three are null.
  torch::nn::Linear intermediate_ = nullptr;
  torch::nn::Linear output_ = nullptr;
  torch::nn::LayerNorm layer_norm_ = nullptr;
  torch::nn::Linear logit_ = nullptr;
};

}  // namespace

Wikihop::HeadPtr MakeWikihopHead(const EtcConfig& model,
                                 const WikihopOptions& options) {
  return std::make_shared<WikihopHead>(model, options);
}

}  // namespace etc
