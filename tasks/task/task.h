#ifndef ETC_TASKS_TASK_TASK_H_
#define ETC_TASKS_TASK_TASK_H_

#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "etc/config.h"
#include "etc/model.h"
#include "etc/step_cost.h"
#include "tasks/data/batch.h"
#include "tasks/data/example.h"
#include "tasks/data/example_source.h"
#include "tasks/data/record_source.h"
#include "tasks/distributed/process_group.h"
#include "tasks/metrics.h"
#include "tasks/task/notices.h"
#include "tasks/task/prediction.h"

namespace etc {

// Numbers by which the loss of an update is divided, summed over all of its
// examples, whatever micro-batch they are in: the number of examples, the
// number of masked tokens. The model decides which numbers, and their order;
// they are whole, so that their sums do not depend on the order of adding.
using LossTotals = std::vector<double>;

// Adds `part` to `totals`, which are empty or as many.
inline void AddTotals(const LossTotals& part, LossTotals* totals) {
  totals->resize(part.size(), 0);
  for (size_t i = 0; i < part.size(); ++i) {
    (*totals)[i] += part[i];
  }
}

// Cost of a head in an update, beside the encoder's run on its examples.
struct HeadCost {
  // Floating-point operations of its products, forward and backward.
  double flops = 0;
  // The encoder's outputs that it reads.
  OutputCounts outputs;
  // Further input of the encoder, run once without and once with a gradient; no
  // examples: none.
  StepShape targets = {.batch = 0};
};

// Shared by the micro-batches of an update, for losses in which examples of
// different micro-batches interact (CPC's negatives): the gradient needs all of
// them. Lives from before the first micro-batch to behind the last.
class UpdateContext {
 public:
  virtual ~UpdateContext() = default;

  // Adds a micro-batch. All are added, in their order, before the model runs on
  // the first.
  virtual void Add(const Examples& examples, const torch::Device& device) = 0;
  // Counts a micro-batch of another rank, in its place.
  virtual void Skip() = 0;
  // All-gathers the shared targets, after the last micro-batch.
  virtual absl::Status Exchange(ProcessGroup* group) = 0;

  // All-reduces the gradients of the shared targets, after the backward passes
  // of all micro-batches.
  virtual absl::Status SumGradients(ProcessGroup* group) = 0;
  // Adds to the gradients of the parameters those through the targets of
  // micro-batch 0, 1, ... of this rank: after the backward passes of all, with
  // LibTorch's random numbers set as they were for its Add.
  virtual void AddGradient(size_t micro_batch) = 0;
};

// A TaskHead whose `classifier` has outputs with a meaning that outlives the
// run: it is written with the weights, and weights to start from are matched
// with it.
class NamedOutputs {
 public:
  struct Meaning {
    // The label of each output; empty of a number, or if not known yet.
    std::vector<std::string> labels;
    // HuggingFace's name for it: "single_label_classification",
    // "multi_label_classification" or "regression".
    std::string problem_type;
    // A number is mean + deviation * output.
    double mean = 0;
    double deviation = 1;
    // True if each token has the outputs, false if the whole text has them.
    bool of_tokens = false;
  };

  virtual ~NamedOutputs() = default;
  virtual Meaning OutputMeaning() const = 0;
};

// The layers of a task around the encoder. Its parameters become `head.*` in a
// checkpoint.
class TaskHead : public torch::nn::Module {
 public:
  // Returns the state shared by the micro-batches of an update; null if there
  // is none. Run uses it for as long as it lives; the head must outlive it.
  virtual std::unique_ptr<UpdateContext> BeginUpdate(EtcModel /*encoder*/) {
    return nullptr;
  }
  // The encoder's input for a batch, with what the head adds to embeddings: the
  // batch's own for heads that add nothing.
  virtual EtcInput EncoderInput(const Batch& batch) { return batch.input; }
  // The task's logits for a batch, by one or several runs of the encoder; the
  // first axis of each is the batch.
  virtual std::vector<torch::Tensor> Run(EtcModel encoder,
                                         const Batch& batch) = 0;
  // The loss of an update, as TrainableModel has it.
  virtual LossTotals Totals(const Examples& examples) const = 0;
  virtual torch::Tensor Loss(const std::vector<torch::Tensor>& logits,
                             const Batch& batch, const LossTotals& totals) = 0;
  // Cost of an update with inputs of that shape. Heads with a few numbers for
  // each token need not count them.
  virtual HeadCost CostOf(const StepShape& /*update*/) const { return {}; }
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
  // The number of added records that have no answer, and so are in none of the
  // scores.
  virtual int64_t num_unanswered() const { return 0; }
  // A remark for people beside the scores: "all 80 predictions are the same";
  // empty: there is none.
  virtual std::string Remark() const { return ""; }
  // Contents of the prediction file in the official format; empty: the task has
  // none.
  virtual std::string FileContents() const = 0;
  // Files to write beside that file.
  virtual std::vector<PredictionFile> MoreFiles() const { return {}; }
};

// A task as the trainer knows it: data -> examples -> model -> predictions ->
// metrics. Its model is that of an EncoderTask or of a ModelTask
// (tasks/train/model_task.h). Stateless after construction; all methods may be
// called from several threads.
class Task {
 public:
  virtual ~Task() = default;

  // The examples of a data set; the task must outlive it.
  //   kCancelled  `request.listener` said so
  // and what is wrong with the files.
  virtual absl::StatusOr<std::unique_ptr<ExampleSource>> Open(
      const DataRequest& request) const = 0;

  // Returns true if Open without patterns gives, for evaluations, records held
  // out of the training data.
  virtual bool holds_out() const { return false; }

  // Returns true if the official program's epochs count records, although
  // these may have several examples.
  virtual bool epochs_count_records() const { return false; }

  // Warnings about options that are allowed.
  virtual std::vector<std::string> Warnings() const { return {}; }

  // The id of tokens that the vocabulary does not know, of which a run warns
  // where there are many; -1: there is none, or no warning.
  virtual int32_t unknown_id() const { return -1; }

  // Facts and warnings about the data for people to know before a run. `train`
  // and `dev` are the results of Open for training and for evaluations.
  virtual absl::StatusOr<Notices> DescribeData(
      const ExampleSource& /*train*/, const ExampleSource& /*dev*/) const {
    return Notices();
  }

  // The settings on which the number and the meaning of the model's outputs
  // depend: {"glue.name", "glue.labels"}.
  virtual std::vector<std::string> OutputSettings() const { return {}; }

  virtual std::unique_ptr<TaskPredictions> MakePredictions() const = 0;

  // The metric by which checkpoints are compared; larger is better, but for
  // IsLowerBetter (tasks/metrics.h).
  virtual std::string main_metric() const = 0;

  // The kinds of global tokens that stand for no text; empty: the task has
  // none.
  virtual std::vector<GlobalTokenName> GlobalTokenNames() const { return {}; }

  // A person's view of one example: tokens with their globals, masks as ranges,
  // the gold answer.
  virtual std::string Describe(const Example& example) const = 0;
};

// A task whose model is an ETC encoder with a head.
class EncoderTask : public Task {
 public:
  virtual std::shared_ptr<TaskHead> MakeHead() const = 0;
};

// `task` as one of these; `subject`, the model's, starts the message: "runs/a
// is of translation".
//   kInvalidArgument  it is none
inline absl::StatusOr<const EncoderTask*> EncoderTaskOf(
    const Task& task, absl::string_view subject) {
  const auto* encoder_task = dynamic_cast<const EncoderTask*>(&task);
  if (encoder_task == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        subject, ", whose model is no encoder with layers of a task"));
  }
  return encoder_task;
}

}  // namespace etc

#endif  // ETC_TASKS_TASK_TASK_H_
