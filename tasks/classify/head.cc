#include <c10/util/Exception.h>
#include <torch/types.h>

#include <memory>
#include <utility>
#include <vector>

#include "tasks/classify/task.h"
#include "tasks/inputs/text_head.h"
#include "tasks/task/benchmark_head.h"
#include "tasks/task/task.h"

namespace etc {
namespace {

int64_t NumOutputs(const ClassifyOptions& options) {
  if (options.type == ClassifyType::kNumber) {
    return 1;
  }
  return options.labels.empty() ? 2
                                : static_cast<int64_t>(options.labels.size());
}

// See MakeClassifyHead.
class ClassifyHead : public BenchmarkHead<ClassifyExample, ClassifyLogits>,
                     public NamedOutputs {
 public:
  ClassifyHead(const EtcConfig& config, ClassifyOptions options)
      : options_(std::move(options)),
        classifier_(config, NumOutputs(options_), config.hidden_dropout_prob,
                    this) {}

  Meaning OutputMeaning() const override {
    switch (options_.type) {
      case ClassifyType::kOne:
        return {.labels = options_.labels,
                .problem_type = "single_label_classification"};
      case ClassifyType::kSeveral:
        return {.labels = options_.labels,
                .problem_type = "multi_label_classification"};
      case ClassifyType::kNumber:
        break;
    }
    return {.labels = {},
            .problem_type = "regression",
            .mean = options_.mean.value_or(0),
            .deviation = options_.deviation.value_or(1)};
  }

  ReadTokens Reads() const override { return ReadTokens::kFirstGlobal; }

  Tensors LogitsOf(const EtcOutput& encoded,
                   const TaskBatch& /*batch*/) override {
    return {.outputs = classifier_.Logits(encoded, is_training())};
  }

  torch::Tensor LossesOf(const Tensors& logits,
                         const TaskBatch& batch) override {
    TORCH_CHECK(
        options_.type == ClassifyType::kNumber || !options_.labels.empty(),
        "there is no loss before the labels are known: complete the "
        "options first");
    switch (options_.type) {
      case ClassifyType::kOne:
        return WeightedCrossEntropies(logits.outputs, batch);
      case ClassifyType::kSeveral:
        return torch::binary_cross_entropy_with_logits(
                   logits.outputs, Targets(logits.outputs, batch),
                   /*weight=*/{}, /*pos_weight=*/{}, at::Reduction::None)
            .mean(1);
      case ClassifyType::kNumber:
        break;
    }
    return (logits.outputs.select(1, 0) - Numbers(logits.outputs, batch))
        .square();
  }

 private:
  torch::Tensor WeightedCrossEntropies(const torch::Tensor& logits,
                                       const TaskBatch& batch) const {
    std::vector<int64_t> labels;
    std::vector<float> weights;
    labels.reserve(batch.examples.size());
    weights.reserve(batch.examples.size());
    for (const auto& example : batch.examples) {
      labels.push_back(example->labels.at(0));
      const auto weight =
          options_.class_weights.find(example->answer.labels.at(0));
      weights.push_back(weight == options_.class_weights.end()
                            ? 1.0F
                            : static_cast<float>(weight->second));
    }
    const torch::Tensor losses = CrossEntropies(logits, labels);  // [B]
    return losses * torch::tensor(weights).to(losses.device());
  }

  // 1 at each label of each document: [B, C].
  static torch::Tensor Targets(const torch::Tensor& logits,
                               const TaskBatch& batch) {
    torch::Tensor targets = torch::zeros(logits.sizes(), torch::kFloat32);
    for (int64_t b = 0; b < batch.size(); ++b) {
      for (const int64_t label : batch.example(b).labels) {
        targets[b][label] = 1;
      }
    }
    return targets.to(logits.device());
  }

  // Returns the target of each output: [B].
  torch::Tensor Numbers(const torch::Tensor& logits,
                        const TaskBatch& batch) const {
    std::vector<float> numbers;
    numbers.reserve(batch.examples.size());
    for (const auto& example : batch.examples) {
      // Halves: the difference of two doubles may be beyond the largest.
      numbers.push_back(static_cast<float>(
          2 * ((example->answer.number / 2 - options_.mean.value_or(0) / 2) /
               options_.deviation.value_or(1))));
    }
    return torch::tensor(numbers).to(logits.device());
  }

  const ClassifyOptions options_;
  PooledClassifier classifier_;
};

}  // namespace

Classify::HeadPtr MakeClassifyHead(const EtcConfig& model,
                                   const ClassifyOptions& options) {
  return std::make_shared<ClassifyHead>(model, options);
}

}  // namespace etc
