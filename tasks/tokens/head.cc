#include <c10/util/Exception.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/apply_linear.h"
#include "base/check_shape.h"
#include "base/to_device.h"
#include "tasks/inputs/text_head.h"
#include "tasks/task/benchmark_head.h"
#include "tasks/task/task.h"
#include "tasks/tokens/task.h"

namespace etc {
namespace {

// Target of tokens that are no first piece.
constexpr int64_t kIgnored = -100;

// See MakeTokensHead.
class TokensHead : public BenchmarkHead<TokensExample, TokensLogits>,
                   public NamedOutputs {
 public:
  TokensHead(const EtcConfig& config, const TokensOptions& options)
      : classes_(options.num_classes()),
        tags_(TagsOfClasses(options)),
        dropout_(config.hidden_dropout_prob),
        classifier_(RegisterHeadLinear("classifier", config, classes_, this)) {}

  Meaning OutputMeaning() const override {
    return {.labels = tags_, .problem_type = "", .of_tokens = true};
  }

  ReadTokens Reads() const override { return ReadTokens::kText; }

  Tensors LogitsOf(const EtcOutput& encoded,
                   const TaskBatch& /*batch*/) override {
    return {.classes = ApplyLinear(
                torch::dropout(TextStates(encoded), dropout_, is_training()),
                classifier_)};
  }

  torch::Tensor LossesOf(const Tensors& logits,
                         const TaskBatch& batch) override {
    const int64_t tokens = logits.classes.size(1);
    ETC_CHECK_SHAPE(logits.classes, {batch.size(), tokens, classes_});
    std::vector<int64_t> targets(static_cast<size_t>(batch.size() * tokens),
                                 kIgnored);
    std::vector<float> units;
    units.reserve(batch.examples.size());
    for (int64_t b = 0; b < batch.size(); ++b) {
      const TokensExample& example = batch.example(b);
      TORCH_CHECK(example.classes.size() == example.units.size(),
                  "there is no loss before the labels are known: complete the "
                  "options first");
      for (size_t i = 0; i < example.units.size(); ++i) {
        targets[static_cast<size_t>(
            b * tokens + TokensExample::PositionOf(example.units[i]))] =
            example.classes[i];
      }
      units.push_back(example.units.empty()
                          ? 1.0F
                          : static_cast<float>(example.units.size()));
    }
    const torch::Device device = logits.classes.device();
    const torch::Tensor losses =  // [B, T]
        torch::cross_entropy_loss(
            logits.classes.flatten(0, 1),
            ToDevice(torch::tensor(targets, torch::kInt64), device),
            /*weight=*/{}, at::Reduction::None, kIgnored)
            .view({batch.size(), tokens});
    return losses.sum(1) / ToDevice(torch::tensor(units), device);
  }

 private:
  const int64_t classes_;
  const std::vector<std::string> tags_;
  const double dropout_;
  torch::nn::Linear classifier_;
};

}  // namespace

Tokens::HeadPtr MakeTokensHead(const EtcConfig& model,
                               const TokensOptions& options) {
  return std::make_shared<TokensHead>(model, options);
}

}  // namespace etc
