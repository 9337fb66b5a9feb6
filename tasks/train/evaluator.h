#ifndef ETC_TASKS_TRAIN_EVALUATOR_H_
#define ETC_TASKS_TRAIN_EVALUATOR_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "tasks/data/record_gate.h"
#include "tasks/metrics.h"
#include "tasks/train/trainable_model.h"

namespace etc {

// The numbers of one evaluation.
struct EvaluationSummary {
  // The scores; empty if the data have no answers.
  Metrics metrics;
  int64_t num_examples = 0;
  SkippedRecords skipped;
  double seconds = 0;
};

// Scores a model between two updates of its training.
class Evaluator {
 public:
  virtual ~Evaluator() = default;

  struct Result {
    EvaluationSummary summary;
    // Contents of predictions.json in the checkpoint; nothing: it has no such
    // file.
    std::optional<std::string> predictions;
  };
  // Evaluates the model as it is now, without dropout and gradients. Its mode
  // is afterwards what it was.
  //   kCancelled  the run is being stopped
  //   kAborted    the model's output is infinite or not a number
  virtual absl::StatusOr<Result> Evaluate(TrainableModel* model) const = 0;

  // The name of the metric by which checkpoints are compared; larger is better.
  virtual std::string main_metric() const = 0;
};

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_EVALUATOR_H_
