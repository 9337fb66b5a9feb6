#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include "base/apply_linear.h"
#include "tasks/classify/task.h"
#include "tasks/typed_head.h"

namespace etc {
namespace {

// g w + b, [B, C], of the global output g of the encoder, [B, 1, H], with
// dropout of g as in the encoder. w is truncated normal.
class ClassifyHead : public TypedHead<ClassifyExample, ClassifyLogits> {
 public:
  ClassifyHead(const EtcConfig& config, int64_t num_labels)
      : dropout_(config.hidden_dropout_prob),
        label_(RegisterHeadLinear("label", config, num_labels, this)) {}

  Tensors LogitsOf(const EtcOutput& encoded,
                   const TaskBatch& /*batch*/) override {
    return {.labels =
                ApplyLinear(torch::dropout(encoded.global_output.select(1, 0),
                                           dropout_, is_training()),
                            label_)};
  }

  // Cross entropy: [B].
  torch::Tensor LossesOf(const Tensors& logits,
                         const TaskBatch& batch) override {
    return CrossEntropies(logits.labels, batch.Each(&ClassifyExample::label));
  }

 private:
  const double dropout_;
  torch::nn::Linear label_;
};

}  // namespace

Classify::HeadPtr Classify::MakeHead(const EtcConfig& model,
                                     const Options& options) {
  return std::make_shared<ClassifyHead>(
      model, static_cast<int64_t>(options.labels.size()));
}

}  // namespace etc
