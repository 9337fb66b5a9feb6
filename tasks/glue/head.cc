#include <torch/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/to_device.h"
#include "tasks/glue/task.h"
#include "tasks/inputs/text_head.h"
#include "tasks/task/benchmark_head.h"
#include "tasks/task/task.h"

namespace etc {
namespace {

// The official program's, whatever the configuration says (doc/glue.md 5).
constexpr double kDropout = 0.1;

// A class, or a score, of the pooled output (PooledClassifier).
class GlueHead : public BenchmarkHead<GlueExample, GlueLogits>,
                 public NamedOutputs {
 public:
  GlueHead(const EtcConfig& config, const GlueOptions& options)
      : is_regression_(options.task->is_regression()),
        labels_(options.labels),
        classifier_(
            config,
            is_regression_ ? 1 : static_cast<int64_t>(options.labels.size()),
            kDropout, this) {}

  Meaning OutputMeaning() const override {
    return {.labels = labels_,
            .problem_type =
                is_regression_ ? "regression" : "single_label_classification"};
  }

  ReadTokens Reads() const override { return ReadTokens::kFirstGlobal; }

  Tensors LogitsOf(const EtcOutput& encoded,
                   const TaskBatch& /*batch*/) override {
    return {.classes = classifier_.Logits(encoded, is_training())};
  }

  // Cross entropy, or the squared error of the score: [B].
  torch::Tensor LossesOf(const Tensors& logits,
                         const TaskBatch& batch) override {
    if (!is_regression_) {
      return CrossEntropies(logits.classes, batch.Each(&GlueExample::label));
    }
    std::vector<double> scores;
    scores.reserve(batch.examples.size());
    for (const auto& example : batch.examples) {
      scores.push_back(example->gold.score);
    }
    const torch::Tensor predicted = logits.classes.select(1, 0);
    return torch::square(
        predicted - ToDevice(torch::tensor(scores, predicted.scalar_type()),
                             predicted.device()));
  }

 private:
  const bool is_regression_;
  const std::vector<std::string> labels_;
  PooledClassifier classifier_;
};

}  // namespace

Glue::HeadPtr MakeGlueHead(const EtcConfig& model, const GlueOptions& options) {
  return std::make_shared<GlueHead>(model, options);
}

}  // namespace etc
