#ifndef ETC_TASKS_TASK_H_
#define ETC_TASKS_TASK_H_

#include <torch/nn/module.h>
#include <torch/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "etc/config.h"
#include "etc/model.h"
#include "tasks/data/batch.h"
#include "tasks/data/example.h"
#include "tasks/metrics.h"

namespace etc {

// What a task adds to the embeddings of tokens, before their LayerNorm; each
// may be undefined.
struct EmbeddingAdders {
  torch::Tensor long_adder;    // [B, L, H]
  torch::Tensor global_adder;  // [B, G, H]
};

// The layers of a task around the encoder. Its parameters become `head.*` in a
// checkpoint.
class TaskHead : public torch::nn::Module {
 public:
  // What goes into the encoder besides tokens: nothing, for most tasks.
  virtual EmbeddingAdders Adders(const Batch& /*batch*/) { return {}; }
  // The task's logits from the encoder's output; the first axis of each is the
  // batch.
  virtual std::vector<torch::Tensor> forward(const EtcOutput& encoded,
                                             const Batch& batch) = 0;
  // One loss for each example: [B]. The loss of a training step is their mean
  // over the whole batch.
  virtual torch::Tensor Losses(const std::vector<torch::Tensor>& logits,
                               const Batch& batch) = 0;
};

// Collects what the model predicts for a data set and turns it into the
// official prediction file and the official scores.
class TaskPredictions {
 public:
  virtual ~TaskPredictions() = default;

  // Takes in one batch. `logits` are on the CPU.
  virtual void Add(const Batch& batch,
                   const std::vector<torch::Tensor>& logits) = 0;
  // The scores of all that was added; empty when the data have no answers.
  virtual Metrics Score() const = 0;
  // Contents of the prediction file in the official format.
  virtual std::string FileContents() const = 0;
};

// One of the benchmarks, as the trainer knows it: raw record -> examples ->
// head -> predictions -> metrics. Tasks are written with types of their own:
// see tasks/task_definition.h. Stateless after construction; all methods may be
// called from several threads.
class Task {
 public:
  virtual ~Task() = default;

  // The examples of one record of an official file, given its JSON text. Most
  // records give one example. `where` starts each message.
  //   kInvalidArgument  the record is not as the official format has it
  virtual absl::StatusOr<std::vector<std::shared_ptr<const Example>>>
  MakeExamples(const std::string& record, const std::string& where) const = 0;

  virtual std::shared_ptr<TaskHead> MakeHead() const = 0;

  virtual std::unique_ptr<TaskPredictions> MakePredictions() const = 0;

  // The metric by which checkpoints are compared; larger is better.
  virtual std::string main_metric() const = 0;

  // A person's view of one example: tokens with their globals, masks as ranges,
  // the gold answer.
  virtual std::string Describe(const Example& example) const = 0;
};

}  // namespace etc

#endif  // ETC_TASKS_TASK_H_
